// Converts between f32 and the two 16-bit floating-point formats, with the same bits on the host and in CUDA kernels.
//
//   mr::f16 h = mr::detail::to_f16(0.1F);
//   float f = mr::detail::to_float(h);                    // exact
//   auto x = mr::detail::half_element<mr::bf16>(0.1F);      // or float, or f16
//
// Rounds to nearest, ties to even. Values that round beyond the largest finite number become infinite. Do not pass NaN
// to to_f16 or to_bf16. One result may differ between the host and kernels: the bits of to_float() of a NaN. Errors:
// none. Threads: the functions are pure; any thread may call them. Format: IEEE 754 binary16; bfloat16 is the upper
// half of an f32.
#pragma once

#include <millrace/base/version.hpp>

#include <cstdint>
#include <type_traits>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Classifies numbers by their bits, on the host and in kernels. This also works in programs built with -ffast-math.
//
//   if (!mr::detail::is_finite(loss)) ++nonfinite;
//   if (mr::detail::is_nan(logit)) ++nans;
//
// Errors: none. Threads: the functions are pure; any thread may call them. Format: IEEE 754.

// Uses the built-in instead of std::bit_cast, because kernels cannot call functions of the standard library.
MILLRACE_BOTH_SIDES constexpr bool is_nan(float value) noexcept {
  return (__builtin_bit_cast(std::uint32_t, value) & 0x7fffffffU) > 0x7f800000U;
}

MILLRACE_BOTH_SIDES constexpr bool is_finite(double value) noexcept {
  return (__builtin_bit_cast(std::uint64_t, value) & 0x7ff0000000000000U) != 0x7ff0000000000000U;
}

}}}   // namespace millrace::detail

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI {

/// The bits of an IEEE binary16 number.
struct f16 {
  std::uint16_t bits;
  friend constexpr bool operator==(f16, f16) = default;
};
/// The bits of a bfloat16 number, which is the upper half of an f32.
struct bf16 {
  std::uint16_t bits;
  friend constexpr bool operator==(bf16, bf16) = default;
};

namespace detail {

MILLRACE_BOTH_SIDES inline bf16 to_bf16(float value) noexcept {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  std::uint16_t result = 0;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result) : "f"(value));
  return {result};
#else
  const auto bits = __builtin_bit_cast(std::uint32_t, value);
  return {static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
#endif
}

MILLRACE_BOTH_SIDES inline f16 to_f16(float value) noexcept {
#ifdef __CUDA_ARCH__
  std::uint16_t result = 0;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result) : "f"(value));
  return {result};
#else
  const auto bits = __builtin_bit_cast(std::uint32_t, value);
  const std::uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  constexpr std::uint32_t overflow = 0x477ff000;       // 65520, halfway between 65504 (the largest f16) and 65536
  constexpr std::uint32_t least_normal = 0x38800000;   // 2^-14
  std::uint32_t result = 0;
  if (magnitude >= overflow) {
    result = 0x7c00;
  } else if (magnitude >= least_normal) {
    const std::uint32_t rebased = magnitude - (std::uint32_t{127 - 15} << 23);
    result = (rebased + 0xfff + (rebased >> 13 & 1)) >> 13;
  } else {
    // A subnormal result is a multiple of 2^-24. Adding 0.5 rounds to such a multiple, ties to even.
    const float shifted = __builtin_bit_cast(float, magnitude) + 0.5F;
    result = __builtin_bit_cast(std::uint32_t, shifted) - __builtin_bit_cast(std::uint32_t, 0.5F);
  }
  return {static_cast<std::uint16_t>(sign | result)};
#endif
}

MILLRACE_BOTH_SIDES constexpr float to_float(float value) noexcept { return value; }

MILLRACE_BOTH_SIDES constexpr float to_float(bf16 value) noexcept {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(value.bits) << 16);
}

MILLRACE_BOTH_SIDES constexpr float to_float(f16 value) noexcept {
#ifdef __CUDA_ARCH__
  if (!__builtin_is_constant_evaluated()) {
    float exact = 0;
    asm("cvt.f32.f16 %0, %1;" : "=f"(exact) : "h"(value.bits));
    return exact;
  }
#endif
  const std::uint32_t sign = (value.bits & 0x8000U) << 16, magnitude = value.bits & 0x7fffU;
  std::uint32_t result = 0;
  if (magnitude >= 0x7c00) result = 0x7f800000U | magnitude << 13;   // infinite, NaN
  else if (magnitude >= 0x400) result = (magnitude << 13) + (std::uint32_t{127 - 15} << 23);
  else result = __builtin_bit_cast(std::uint32_t, static_cast<float>(magnitude) * 0x1p-24F);
  return __builtin_bit_cast(float, sign | result);
}

template <class T>
MILLRACE_BOTH_SIDES T half_element(float value) noexcept {
  if constexpr (std::is_same_v<T, f16>) return to_f16(value);
  else if constexpr (std::is_same_v<T, bf16>) return to_bf16(value);
  else return value;
}

/// The element types that training computes with.
template <class T>
concept training_element = std::is_same_v<T, float> || std::is_same_v<T, f16> || std::is_same_v<T, bf16>;

}   // namespace detail

}}   // namespace millrace

#include <millrace/simd/precise_end.inc>
