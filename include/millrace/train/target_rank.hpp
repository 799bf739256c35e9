// Returns the rank of the correct class in a row of logits, the basis of top-1 and top-k accuracy.
//
//   auto rank = mr::detail::target_rank(logits_of_one_sample, label);
//   bool top_1_is_right = rank == 0, top_5_is_right = rank < 5;
//
// Ties: among equal logits, the lower class ranks first, as in argmax. The rank in a row with a NaN is `unranked`.
// Cost: one pass, without sorting. Errors: none. Threads: the functions are pure; any thread may call them.
#pragma once

#include <millrace/base/half.hpp>
#include <millrace/base/numbers.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The rank of the target in a row with a NaN.
inline constexpr std::size_t unranked = ~std::size_t{0};

/// Counts the classes that rank before the target, in a part of a row. merge() combines the parts of a row.
struct rank_part {
  std::uint32_t ahead = 0, nans = 0;

  MILLRACE_BOTH_SIDES constexpr void take(float logit, float target, bool before_label) noexcept {
    ahead += before_label ? logit >= target : logit > target;
    nans += is_nan(logit);
  }
  MILLRACE_BOTH_SIDES constexpr void merge(const rank_part& other) noexcept {
    ahead += other.ahead;
    nans += other.nans;
  }
  MILLRACE_BOTH_SIDES constexpr std::size_t rank() const noexcept { return nans > 0 ? ~std::size_t{0} : ahead; }
};

template <class T>
constexpr std::size_t rank_among(std::span<const T> logits, std::size_t label) noexcept {
  const float target = to_float(logits[label]);
  rank_part all;
  for (std::size_t c = 0; c < label; ++c) all.take(to_float(logits[c]), target, true);
  for (std::size_t c = label; c < logits.size(); ++c) all.take(to_float(logits[c]), target, false);
  return all.rank();
}

/// Returns the number of classes that rank before `label`, or `unranked`. `label` must be less than logits.size().
constexpr std::size_t target_rank(std::span<const float> logits, std::size_t label) noexcept {
  return rank_among(logits, label);
}
/// Returns the rank for f16 logits.
constexpr std::size_t target_rank(std::span<const f16> logits, std::size_t label) noexcept {
  return rank_among(logits, label);
}
/// Returns the rank for bf16 logits.
constexpr std::size_t target_rank(std::span<const bf16> logits, std::size_t label) noexcept {
  return rank_among(logits, label);
}

}}}   // namespace millrace::detail
