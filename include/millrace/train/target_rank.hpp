// The rank of the right class among a row of logits: what top-1 and top-k accuracy are made of.
//
//   auto rank = mr::target_rank(logits_of_one_sample, label);
//   rank == 0;    // top-1 is right
//   rank < 5;     // top-5 is right
//
// Ties: of equal logits the lower class comes first, as argmax has it. A row that holds a NaN has no order: `unranked`.
// One pass, no sorting, no branch on the data. Threads: pure.
#pragma once

#include <millrace/base/version.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace::inline MILLRACE_ABI {

inline constexpr std::size_t unranked = ~std::size_t{0};

/// How many classes come before `label`; label < logits.size().
constexpr std::size_t target_rank(std::span<const float> logits, std::size_t label) noexcept {
  const float target = logits[label];
  std::uint32_t ahead = 0, nans = 0;
  const auto is_nan = [](float x) noexcept { return (std::bit_cast<std::uint32_t>(x) & 0x7fffffffU) > 0x7f800000U; };
  for (std::size_t c = 0; c < label; ++c) {
    ahead += logits[c] >= target;
    nans += is_nan(logits[c]);
  }
  for (std::size_t c = label; c < logits.size(); ++c) {
    ahead += logits[c] > target;
    nans += is_nan(logits[c]);
  }
  return nans > 0 ? unranked : ahead;
}

}  // namespace millrace::inline MILLRACE_ABI
