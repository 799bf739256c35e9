// The kernel of mix_kernels.hpp with AVX2: the same bytes, 32 at a time.
//
//   if (mr::detail::cpu_has_avx2()) mr::detail::avx2_mixing::run(parts, count, out);
//
// One multiply-add of pairs processes two parts. Errors, threads: see mix_kernels.hpp.
#pragma once

#ifdef __x86_64__

#include <millrace/image/color/mix_kernels.hpp>
#include <millrace/image/color/rgb_vectors_avx2.hpp>
#include <millrace/simd/avx2_intrinsics.hpp>

#include <cstddef>
#include <cstdint>

#include <millrace/simd/avx2_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

struct avx2_mixing {
  static void run(std::span<const mixed_bytes> parts, std::size_t count, std::uint8_t* out) noexcept {
    const std::size_t vector_bytes = count / 32 * 32;
    for (std::size_t i = 0; i < vector_bytes; i += 32) {
      quads_of_32 sums{};
      for (std::size_t k = 0; k < parts.size(); k += 2) {
        const mixed_bytes first = parts[k], second = k + 1 < parts.size() ? parts[k + 1] : mixed_bytes{first.data, 0};
        add(sums, load(first.data + i), load(second.data + i), _mm256_set1_epi32(second.weight << 16 | first.weight));
      }
      for (__m256i& sum : sums.q) sum = _mm256_srli_epi32(sum, 14);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), avx2_rgb::bytes(sums));
    }
    for (std::size_t i = vector_bytes; i < count; ++i) {
      std::int32_t sum = 0;
      for (const mixed_bytes& part : parts) sum += part.weight * part.data[i];
      out[i] = static_cast<std::uint8_t>(sum >> 14);
    }
  }

 private:
  static __m256i load(const std::uint8_t* from) noexcept {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }

  static void add(quads_of_32& sums, __m256i a, __m256i b, __m256i weights) noexcept {
    const __m256i zero = _mm256_setzero_si256();
    const __m256i low = _mm256_unpacklo_epi8(a, b), high = _mm256_unpackhi_epi8(a, b);
    const __m256i pairs[4] = {_mm256_unpacklo_epi8(low, zero), _mm256_unpackhi_epi8(low, zero),
                              _mm256_unpacklo_epi8(high, zero), _mm256_unpackhi_epi8(high, zero)};
    for (unsigned k = 0; k < 4; ++k) sums.q[k] = _mm256_add_epi32(sums.q[k], _mm256_madd_epi16(pairs[k], weights));
  }
};

}}}  // namespace millrace::detail

#include <millrace/simd/avx2_end.inc>

#endif
