// Copies pixels of three bytes to pixels of four bytes. The fourth byte is 255.
//
//   if (!mr::detail::copy_rgb_to_rgbx(row, 500, memory)) copy_one_by_one();   // false: this CPU has no AVX2
//
// Up to 16 bytes may be read beyond `from` and written beyond `to`. Errors: none. Threads: pure functions; any thread.
#pragma once

#include <millrace/simd/avx2_intrinsics.hpp>
#include <millrace/simd/cpu_features.hpp>

#include <cstddef>
#include <cstdint>

#ifdef __x86_64__

#include <millrace/simd/avx2_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

inline void copy_rgb_to_rgbx_by_avx2(const std::uint8_t* from, std::size_t count, std::uint8_t* to) noexcept {
  const __m128i places = _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1);
  const __m128i full = _mm_set1_epi32(static_cast<int>(0xff00'0000U));
  for (std::size_t i = 0; i < count; i += 4) {
    const __m128i four = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 3 * i));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 4 * i), _mm_or_si128(_mm_shuffle_epi8(four, places), full));
  }
}

}}}  // namespace millrace::detail

#include <millrace/simd/avx2_end.inc>

#endif

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns false without copying if this CPU has no fast code.
inline bool copy_rgb_to_rgbx([[maybe_unused]] const std::uint8_t* from, [[maybe_unused]] std::size_t count,
                             [[maybe_unused]] std::uint8_t* to) noexcept {
#ifdef __x86_64__
  if (cpu_has_avx2()) {
    copy_rgb_to_rgbx_by_avx2(from, count, to);
    return true;
  }
#endif
  return false;
}

}}}  // namespace millrace::detail
