// Determines which version of the order an indexed run has. A resumed run uses the version of its resume point. A new
// run uses the current version.
//
//   const mr::detail::order_rule rule = mr::detail::order_rule_of({.seed = 7, .resume = text});
//   rule.lanes;  rule.permutes;  rule.version;      // options for exact_order, and for the resume points of the run
//
// item/position.hpp describes the versions.
// Errors: data_error for a text that is not a resume point. Threads: pure functions; any thread.
#pragma once

#include <millrace/item/position.hpp>
#include <millrace/read/run/indexed_run_options.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The part of an order that depends on the version of the resume point.
struct order_rule {
  std::size_t lanes = 0;                             ///< number of lanes; 0 selects automatic_lanes()
  bool permutes = true;                              ///< exact_order_options::permutes
  std::uint32_t version = position::index_version;   ///< version of the run's resume points
};

/// Returns the rule for a run with these options.
inline order_rule order_rule_of(const indexed_run_options& o) {
  // A larger number in the text is ignored, because each lane uses memory.
  constexpr std::uint32_t max_lanes = 1 << 16;
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

}}}   // namespace millrace::detail
