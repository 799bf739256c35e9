// Defines what order_rule.hpp declares.
#pragma once

#include <millrace/read/run/order_rule.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE order_rule order_rule_of(const indexed_run_options& o) {
  constexpr std::uint32_t max_lanes = 1 << 16;   // of a text, which is not trusted: each lane takes memory
  order_rule rule{.lanes = o.lanes};
  if (o.resume.empty()) return rule;
  const position from = parse_position(o.resume);
  if (from.version == position::older_index_version) {
    rule.permutes = false;
    rule.version = from.version;
  }
  if (o.lanes == 0 && from.lanes <= max_lanes) rule.lanes = from.lanes;
  return rule;
}

}}}  // namespace millrace::detail
