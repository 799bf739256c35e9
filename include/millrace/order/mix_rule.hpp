// How sources are mixed: their weights, and what happens when one runs out.
//
//   mix_rule rule{.sources = {{.weight = 0.7, .name = "photos"}, {.weight = 0.3}},
//                 .on_exhausted = mr::exhausted::repeat};
//
// What each rule does: order/mix_plan.hpp.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// What becomes of a mix when one of its sources has no more samples.
enum class exhausted : std::uint8_t { stop, repeat, reweight };

/// One source of a mix, as the rule of its turns sees it.
struct mix_rule_source {
  double weight = 1;
  std::uint64_t seed = 0;
  std::size_t window = 0;   ///< of its shuffle, in samples; 0: none
  std::string name{};       ///< for people; empty: its number
};
struct mix_rule {
  std::vector<mix_rule_source> sources{};
  exhausted on_exhausted = exhausted::stop;
};

}}  // namespace millrace
