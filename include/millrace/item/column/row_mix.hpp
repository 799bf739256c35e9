// Describes how mixup or cutmix mixes a row of a batch with another row. Implements the formulas of mixup for bytes and
// for floating-point numbers.
//
//   const mr::row_mix by_mixup{.partner = 5, .weight = 45'874};                      // 0.7 of the row, 0.3 of row 5
//   const mr::row_mix by_cutmix{.partner = 5, .right = 112, .bottom = 112};          // a quarter is from row 5
//   const std::uint8_t mixed = mr::detail::mixed_element(own, other, mr::detail::mix_weights(by_mixup.weight));
//
// Both rows of a pair have the same weight and the same box (the rectangle that cutmix exchanges). Each row is mixed
// with the elements that the other row had before the mix. The host and the GPU kernels use the same formulas and
// produce the same bits. In these formulas, a is an element of the row, and b the element of its partner:
// - bytes: (a * weight + b * (65536 - weight) + 32768) >> 16
// - f32, f16 and bf16: fma(weight / 65536, a, rounded((65536 - weight) / 65536 * b)) as f32, then rounded to the type
//
// A weight is an even number of 65536ths, and thus a multiple of 1/32768. Therefore CPU instructions for numbers with
// 15 fraction bits produce the same bytes as the formula. If session_options::on_damage is set, a copy of another row
// may replace a damaged row. `next_copy` of the copied row then contains the row number of the copy.
// Errors: none. Threads: the functions are pure; any thread may call them. A .cu file may include this header, because
// it is cheap to compile.
#pragma once

#include <millrace/base/half.hpp>

#include <cstdint>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI {

/// The mix of one row of a batch: the partner, the weight, and the box.
struct row_mix {
  static constexpr std::int32_t none = -1;
  static constexpr std::uint32_t full_weight = 65'536;   ///< a weight of 1

  std::int32_t partner = none;     ///< number of the row that is mixed into this row; `none` if unmixed
  std::int32_t next_copy = none;   ///< in a row: the number of its first copy; in a copy: the number of the next copy
  std::uint32_t weight = full_weight;   ///< weight of this row's elements: an even number of 65536ths; the rest is the
                                        ///< partner's weight
  /// The box of pixels from the partner: rows [top, bottom) and columns [left, right). Empty for mixup.
  std::uint16_t left = 0, top = 0, right = 0, bottom = 0;

  /// Returns whether mixing changes the row.
  MILLRACE_BOTH_SIDES constexpr bool changes() const noexcept {
    return partner >= 0 && (weight != full_weight || (left < right && top < bottom));
  }
  friend bool operator==(const row_mix&, const row_mix&) = default;
};

namespace detail {

/// A weight in the form that the formulas use.
struct mix_weights {
  MILLRACE_BOTH_SIDES explicit constexpr mix_weights(std::uint32_t weight) noexcept
      : own(weight),
        other(row_mix::full_weight - weight),
        own_share(static_cast<float>(weight) * 0x1p-16F),
        other_share(static_cast<float>(row_mix::full_weight - weight) * 0x1p-16F) {}

  std::uint32_t own, other;
  float own_share, other_share;   // both values are exact
};

/// Returns the element of a row after mixup with `other`.
MILLRACE_BOTH_SIDES inline std::uint8_t mixed_element(std::uint8_t own, std::uint8_t other,
                                                      const mix_weights& w) noexcept {
  return static_cast<std::uint8_t>((own * w.own + other * w.other + 32'768) >> 16);
}
/// Overload for floating point. With an explicit fused multiply-add, every compiler produces the same bits.
template <training_element T>
MILLRACE_BOTH_SIDES T mixed_element(T own, T other, const mix_weights& w) noexcept {
#ifdef __CUDA_ARCH__
  return half_element<T>(fmaf(w.own_share, to_float(own), w.other_share * to_float(other)));
#else
  return half_element<T>(
      __builtin_fmaf(w.own_share, to_float(own), w.other_share * to_float(other)));   // avoids <cmath>
#endif
}

/// The element types that can be mixed.
template <class T>
concept mixable_element = std::is_same_v<T, std::uint8_t> || training_element<T>;

}   // namespace detail

}}   // namespace millrace

#include <millrace/simd/precise_end.inc>
