// Says how sources are mixed: their weights, and the behavior when a source runs out.
//
//   mix_rule rule{.sources = {{.weight = 0.7, .name = "photos"}, {.weight = 0.3}},
//                 .on_exhausted = mr::exhausted::repeat};
//
// order/mix_plan.hpp describes the effect of each value of `exhausted`.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The behavior of a mix when one of its sources runs out: end the epoch, repeat the source, or reweight the others.
enum class exhausted : std::uint8_t { stop, repeat, reweight };

/// One source of a mix: its weight, and the seed and window of its shuffle.
struct mix_rule_source {
  double weight = 1;
  std::uint64_t seed = 0;
  std::size_t window = 0;   ///< shuffle window in samples; 0: not shuffled
  std::string name{};       ///< name for messages and reports; empty: the number of the source
};
/// The sources of a mix, and the behavior when one runs out.
struct mix_rule {
  std::vector<mix_rule_source> sources{};
  exhausted on_exhausted = exhausted::stop;
};

}}}  // namespace millrace::detail
