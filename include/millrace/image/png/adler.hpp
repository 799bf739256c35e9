// Computes Adler-32, the checksum of a zlib stream's output.
//
//   std::uint32_t complete = mr::detail::adler(data);
//   std::uint32_t same = mr::detail::adler(second_half, mr::detail::adler(first_half));
//
// Uses AVX2 if the CPU supports it; the result does not depend on the CPU. Threads: pure functions; any thread.
// Errors: none.
// Source: RFC 1950, sections 2.2 and 8.2.
#pragma once

#include <millrace/simd/avx2_intrinsics.hpp>
#include <millrace/simd/cpu_features.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The two sums of Adler-32: the sum of the bytes, and the sum of the first sum after each byte.
struct adler_sums {
  static constexpr std::uint32_t modulus = 65'521;
  static constexpr std::size_t max_at_once = 5'504;   ///< bytes that cannot overflow 32 bits; a multiple of 64

  std::uint64_t first = 1, second = 0;

  void add(std::span<const std::uint8_t> bytes) noexcept {
    for (const std::uint8_t byte : bytes) second += first += byte;
  }
  void reduce() noexcept { first %= modulus, second %= modulus; }
};

}}}  // namespace millrace::detail

#ifdef __x86_64__
#include <millrace/simd/avx2_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Adds at most max_at_once bytes. The number of bytes must be a multiple of 64.
inline void add_to_adler_by_avx2(adler_sums& sums, std::span<const std::uint8_t> bytes) noexcept {
  const __m256i second_weights = _mm256_setr_epi8(32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16,
                                                  15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1);
  const __m256i first_weights = _mm256_add_epi8(second_weights, _mm256_set1_epi8(32));
  const __m256i zero = _mm256_setzero_si256(), ones = _mm256_set1_epi16(1);
  __m256i first = zero, before = zero, weighted = zero;
  for (std::size_t i = 0; i < bytes.size(); i += 64) {
    const auto* const from = reinterpret_cast<const __m256i*>(bytes.data() + i);
    const __m256i a = _mm256_loadu_si256(from), b = _mm256_loadu_si256(from + 1);
    before = _mm256_add_epi32(before, first);
    first = _mm256_add_epi32(first, _mm256_add_epi32(_mm256_sad_epu8(a, zero), _mm256_sad_epu8(b, zero)));
    const __m256i a_sums = _mm256_madd_epi16(_mm256_maddubs_epi16(a, first_weights), ones);
    const __m256i b_sums = _mm256_madd_epi16(_mm256_maddubs_epi16(b, second_weights), ones);
    weighted = _mm256_add_epi32(weighted, _mm256_add_epi32(a_sums, b_sums));
  }
  const auto total = [](__m256i v) noexcept {
    alignas(32) std::uint32_t lane[8];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lane), v);
    std::uint64_t sum = 0;
    for (const std::uint32_t n : lane) sum += n;
    return sum;
  };
  sums.second += sums.first * bytes.size() + 64 * total(before) + total(weighted);
  sums.first += total(first);
}

}}}  // namespace millrace::detail

#include <millrace/simd/avx2_end.inc>
#endif

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns the checksum of `bytes`. If `before` is the checksum of the preceding bytes, returns the checksum of the
/// preceding bytes and `bytes` together.
inline std::uint32_t adler(std::span<const std::uint8_t> bytes, std::uint32_t before = 1) noexcept {
  adler_sums sums{.first = before & 0xffff, .second = before >> 16};
  while (!bytes.empty()) {
    auto now = bytes.first(std::min(bytes.size(), adler_sums::max_at_once));
    bytes = bytes.subspan(now.size());
#ifdef __x86_64__
    if (cpu_has_avx2()) {
      const auto blocks = now.first(now.size() / 64 * 64);
      add_to_adler_by_avx2(sums, blocks);
      now = now.subspan(blocks.size());
    }
#endif
    sums.add(now);
    sums.reduce();
  }
  return static_cast<std::uint32_t>(sums.second << 16 | sums.first);
}

}}}  // namespace millrace::detail
