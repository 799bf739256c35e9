// Finds marked bytes in vectors of 16 bytes. Every x86-64 processor (SSE2) and every aarch64 processor (NEON) has these
// vectors. Other processors use loops.
//
//   const auto first = mr::detail::load_16(from), second = mr::detail::load_16(from + 16);
//   const auto low = mr::detail::equal_bytes(first, 0xff), high = mr::detail::equal_bytes(second, 0xff);
//   if (mr::detail::any_marked(low | high)) from += mr::detail::first_marked(low, high);
//
// Marks are a vector with 0xff for each marked byte, and 0 for all other bytes.
// Errors: none. Threads: pure functions; any thread.
#pragma once

#include <millrace/base/version.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#elif defined __aarch64__
#include <arm_neon.h>
#endif

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

using bytes_16 [[gnu::vector_size(16)]] = std::uint8_t;

MILLRACE_ALWAYS_INLINE inline bytes_16 load_16(const std::uint8_t* from) noexcept {
  bytes_16 v;
  std::memcpy(&v, from, 16);
  return v;
}
MILLRACE_ALWAYS_INLINE inline void store_16(std::uint8_t* to, bytes_16 v) noexcept { std::memcpy(to, &v, 16); }

/// Marks the bytes that equal `value`.
MILLRACE_ALWAYS_INLINE inline bytes_16 equal_bytes(bytes_16 v, std::uint8_t value) noexcept {
  return reinterpret_cast<bytes_16>(v == (bytes_16{} + value));
}

#ifdef __SSE2__
inline constexpr unsigned bits_per_mark = 1;
MILLRACE_ALWAYS_INLINE inline unsigned mark_bits(bytes_16 marks) noexcept {
  return static_cast<unsigned>(_mm_movemask_epi8(reinterpret_cast<__m128i>(marks)));
}
/// Compares 16 numbers with `value`. Byte i of the result is marked if from[i] is above `value`. `from` must be aligned
/// to 16 bytes.
MILLRACE_ALWAYS_INLINE inline bytes_16 marks_above(const std::int32_t* from, std::int32_t value) noexcept {
  const auto above = [&](std::size_t i) {
    return _mm_cmpgt_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(from + i)), _mm_set1_epi32(value));
  };
  return reinterpret_cast<bytes_16>(
      _mm_packs_epi16(_mm_packs_epi32(above(0), above(4)), _mm_packs_epi32(above(8), above(12))));
}
#elif defined __aarch64__
inline constexpr unsigned bits_per_mark = 4;   // because NEON has no instruction that returns one bit for each byte
MILLRACE_ALWAYS_INLINE inline std::uint64_t mark_bits(bytes_16 marks) noexcept {
  return vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(reinterpret_cast<uint16x8_t>(marks), 4)), 0);
}
MILLRACE_ALWAYS_INLINE inline bytes_16 marks_above(const std::int32_t* from, std::int32_t value) noexcept {
  const auto above = [&](std::size_t i) { return vmovn_u32(vcgtq_s32(vld1q_s32(from + i), vdupq_n_s32(value))); };
  return reinterpret_cast<bytes_16>(
      vcombine_u8(vmovn_u16(vcombine_u16(above(0), above(4))), vmovn_u16(vcombine_u16(above(8), above(12)))));
}
#else
inline constexpr unsigned bits_per_mark = 1;
inline unsigned mark_bits(bytes_16 marks) noexcept {
  unsigned bits = 0;
  for (unsigned i = 0; i < 16; ++i) bits |= (marks[i] & 1U) << i;
  return bits;
}
inline bytes_16 marks_above(const std::int32_t* from, std::int32_t value) noexcept {
  bytes_16 marks{};
  for (std::size_t i = 0; i < 16; ++i) marks[i] = from[i] > value ? 0xff : 0;
  return marks;
}
#endif

MILLRACE_ALWAYS_INLINE inline bool any_marked(bytes_16 marks) noexcept { return mark_bits(marks) != 0; }
/// Returns the index of the first marked byte; 16 if there is none.
MILLRACE_ALWAYS_INLINE inline unsigned first_marked(bytes_16 marks) noexcept {
  auto bits = mark_bits(marks);
  if (bits_per_mark == 1) bits |= 1U << 16;
  return static_cast<unsigned>(std::countr_zero(bits)) / bits_per_mark;
}
/// Returns the index of the first marked byte in 32 bytes: `low`, followed by `high`. At least one byte must be marked.
MILLRACE_ALWAYS_INLINE inline unsigned first_marked(bytes_16 low, bytes_16 high) noexcept {
  if (bits_per_mark == 1) return static_cast<unsigned>(__builtin_ctz(mark_bits(low) | mark_bits(high) << 16));
  return any_marked(low) ? first_marked(low) : 16 + first_marked(high);
}

}}}   // namespace millrace::detail
