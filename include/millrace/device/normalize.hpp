// Normalizes pixels on the host: u8 NHWC to f32, f16 or bf16, NHWC or NCHW, as (x / 255 - mean) / std per channel.
//
//   mr::normalize(pixels, numbers, {.mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225},
//                                   .layout = mr::image_layout::nchw});
//
// Shapes: pixels [B, H, W, C] with C of 1 to 4; numbers [B, H, W, C] or [B, C, H, W]. The formula is in
// normalize_options.hpp. Every CPU, compiler and code path computes the same bits. The code uses AVX2 if the CPU
// supports it, otherwise a table of 256 values per channel. Large results bypass the cache.
// Errors: as in normalize_options.hpp; setup_error if a view is in device memory. Use normalize.cuh for device memory.
// Threads: any; calls share no state. The caller may split a large batch along B and process the parts on several
// threads.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/device/normalize_options.hpp>
#include <millrace/simd/bf16_avx2.hpp>
#include <millrace/simd/cpu_features.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

struct table_normalizer {
  template <class T>
  static void run(const normalize_job<T>& job) {
    const auto table = std::make_unique<std::array<std::array<T, 256>, 4>>();
    for (std::size_t c = 0; c < job.channels; ++c)
      for (std::size_t x = 0; x < 256; ++x) (*table)[c][x] = job.value(static_cast<std::uint8_t>(x), c);
    const std::uint8_t* in = job.in;
    for (std::size_t image = 0; image < job.images; ++image) {
      T* out = job.out + image * job.pixels * job.channels;
      const std::size_t pixel_step = job.planar ? 1 : job.channels, channel_step = job.planar ? job.pixels : 1;
      for (std::size_t p = 0; p < job.pixels; ++p)
        for (std::size_t c = 0; c < job.channels; ++c) out[p * pixel_step + c * channel_step] = (*table)[c][*in++];
    }
  }
};

#ifdef __x86_64__

/// Computes sixteen numbers at a time. Each member function has its own target attribute, so that builds for any x86-64
/// contain this code. Fold expressions replace loops over channels, because -O2 would not unroll these loops and would
/// store the factors in memory.
struct avx2_normalizer {
  static bool usable() noexcept { return cpu_has_avx2(); }

  template <class T>
  static void run(const normalize_job<T>& job) {
    // A result larger than the caches bypasses them, because an ordinary store would first read each cache line from
    // memory. Streaming stores must be aligned; planes with different alignments cannot all use them.
    constexpr std::size_t large_bytes = std::size_t{8} << 20;
    const bool large = job.images * job.pixels * job.channels * sizeof(T) >= large_bytes;
    const bool streams = large && (!job.planar || job.pixels * sizeof(T) % store_bytes == 0);
    streams ? choose<T, true>(job) : choose<T, false>(job);
    _mm_sfence();
  }

 private:
  static constexpr std::size_t store_bytes = 32;

  template <class T, bool Streams>
  static void choose(const normalize_job<T>& job) {
    switch (job.channels) {
      case 1: return interleaved<T, Streams, 1>(job);
      case 2: return job.planar ? planar<T, Streams, 2>(job) : interleaved<T, Streams, 2>(job);
      case 3: return job.planar ? planar<T, Streams, 3>(job) : interleaved<T, Streams, 3>(job);
      default: return job.planar ? planar<T, Streams, 4>(job) : interleaved<T, Streams, 4>(job);
    }
  }

  [[gnu::target("avx2,fma,f16c"), gnu::always_inline]] static inline __m256 scaled(__m256i values, __m256 scale,
                                                                                   __m256 bias) noexcept {
    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(values), scale, bias);
  }

  /// Loads eight bytes and returns them as 32-bit numbers.
  [[gnu::target("avx2,fma,f16c"), gnu::always_inline]] static inline __m256i load_8(const std::uint8_t* from) noexcept {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
  }

  template <bool Streams, class Vector>
  [[gnu::target("avx2,fma,f16c"), gnu::always_inline]] static inline void store(void* to, Vector v) noexcept {
    auto* place = static_cast<__m256i*>(to);
    if constexpr (Streams) _mm256_stream_si256(place, __builtin_bit_cast(__m256i, v));
    else _mm256_storeu_si256(place, __builtin_bit_cast(__m256i, v));
  }

  /// Converts sixteen numbers to T and stores them.
  template <class T, bool Streams>
  [[gnu::target("avx2,fma,f16c"), gnu::always_inline]] static inline void store_16(T* to, __m256 a, __m256 b) noexcept {
    if constexpr (std::is_same_v<T, float>) {
      store<Streams>(to, a);
      store<Streams>(to + 8, b);
    } else if constexpr (std::is_same_v<T, f16>) {
      const __m128i low = _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT);
      const __m128i high = _mm256_cvtps_ph(b, _MM_FROUND_TO_NEAREST_INT);
      store<Streams>(to, _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1));
    } else {
      const __m256i crossed = _mm256_packus_epi32(upper_halves(a), upper_halves(b));   // packs per 128-bit half
      store<Streams>(to, _mm256_permute4x64_epi64(crossed, 0xd8));
    }
  }

  /// Returns the number of elements before the first address in `out` that is aligned for a store.
  template <class T>
  static std::size_t to_alignment(const T* out) noexcept {
    const auto past = reinterpret_cast<std::uintptr_t>(out) % store_bytes;
    return past == 0 ? 0 : (store_bytes - past) / sizeof(T);
  }

  /// The factors of the channels as vectors. For planar output, `pick` also contains the shuffles that select one
  /// channel of four pixels in each 128-bit half.
  template <std::size_t Channels>
  struct factors {
    __m256 scale[Channels], bias[Channels];
    __m256i pick[Channels];
  };

  template <class T, bool Streams, std::size_t Channels, std::size_t... K>
  [[gnu::target("avx2,fma,f16c"), gnu::always_inline]] static inline void interleaved_step(
      const factors<Channels>& f, const std::uint8_t* in, T* out, std::index_sequence<K...>) noexcept {
    (store_16<T, Streams>(
         out + 16 * K, scaled(load_8(in + 16 * K), f.scale[2 * K % Channels], f.bias[2 * K % Channels]),
         scaled(load_8(in + 16 * K + 8), f.scale[(2 * K + 1) % Channels], f.bias[(2 * K + 1) % Channels])),
     ...);
  }

  /// Processes the complete batch as one sequence of elements. The factors of the channels repeat every `Channels`
  /// vectors.
  template <class T, bool Streams, std::size_t Channels>
  [[gnu::target("avx2,fma,f16c")]] static void interleaved(const normalize_job<T>& job) {
    const std::size_t count = job.images * job.pixels * Channels;
    std::size_t i = 0;
    for (const std::size_t head = to_alignment(job.out); i < head && i < count; ++i)
      job.out[i] = job.value(job.in[i], i % Channels);
    factors<Channels> f;
    for (std::size_t k = 0; k < Channels; ++k) {
      float scale[8], bias[8];
      for (std::size_t lane = 0; lane < 8; ++lane) {
        scale[lane] = job.scale[(i + 8 * k + lane) % Channels];
        bias[lane] = job.bias[(i + 8 * k + lane) % Channels];
      }
      f.scale[k] = _mm256_loadu_ps(scale);
      f.bias[k] = _mm256_loadu_ps(bias);
    }
    for (; i + 16 * Channels <= count; i += 16 * Channels)
      interleaved_step<T, Streams>(f, job.in + i, job.out + i, std::make_index_sequence<Channels>());
    for (; i < count; ++i) job.out[i] = job.value(job.in[i], i % Channels);
  }

  /// Loads eight pixels, four into each 128-bit half. Reads at most four pixels beyond these eight.
  template <std::size_t Channels>
  [[gnu::target("avx2,fma,f16c"), gnu::always_inline]] static inline __m256i load_pixels(
      const std::uint8_t* from) noexcept {
    const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 4 * Channels));
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
  }

  template <class T, bool Streams, std::size_t Channels, std::size_t... C>
  [[gnu::target("avx2,fma,f16c"), gnu::always_inline]] static inline void planar_step(
      const factors<Channels>& f, const std::uint8_t* in, T* out, std::size_t plane,
      std::index_sequence<C...>) noexcept {
    const __m256i a = load_pixels<Channels>(in), b = load_pixels<Channels>(in + 8 * Channels);
    (store_16<T, Streams>(out + C * plane, scaled(_mm256_shuffle_epi8(a, f.pick[C]), f.scale[C], f.bias[C]),
                          scaled(_mm256_shuffle_epi8(b, f.pick[C]), f.scale[C], f.bias[C])),
     ...);
  }

  template <class T, bool Streams, std::size_t Channels>
  [[gnu::target("avx2,fma,f16c")]] static void planar(const normalize_job<T>& job) {
    factors<Channels> f;
    for (std::size_t c = 0; c < Channels; ++c) {
      const auto lane = [c](std::size_t p) { return static_cast<int>(0x80808000 | (p * Channels + c)); };
      f.pick[c] = _mm256_setr_epi32(lane(0), lane(1), lane(2), lane(3), lane(0), lane(1), lane(2), lane(3));
      f.scale[c] = _mm256_set1_ps(job.scale[c]);
      f.bias[c] = _mm256_set1_ps(job.bias[c]);
    }
    for (std::size_t image = 0; image < job.images; ++image) {
      const std::uint8_t* in = job.in + image * job.pixels * Channels;
      T* out = job.out + image * job.pixels * Channels;
      const auto one = [&](std::size_t p) {
        for (std::size_t c = 0; c < Channels; ++c) out[c * job.pixels + p] = job.value(in[p * Channels + c], c);
      };
      std::size_t p = 0;
      for (const std::size_t head = to_alignment(out); p < head && p < job.pixels; ++p) one(p);
      constexpr std::size_t read_beyond = 4;
      for (; p + 16 + read_beyond <= job.pixels; p += 16)
        planar_step<T, Streams>(f, in + p * Channels, out + p, job.pixels, std::make_index_sequence<Channels>());
      for (; p < job.pixels; ++p) one(p);
    }
  }
};

#endif

}  // namespace detail

/// Normalizes pixels, [B, H, W, 1 to 4] u8, on the host. The numbers are [B, H, W, C] or [B, C, H, W].
/// Throws setup_error if the shapes do not match, an option is invalid, or a view is in device memory.
template <detail::training_element T>
void normalize(const tensor_view<const std::uint8_t, 4>& pixels, const tensor_view<T, 4>& numbers,
               const normalize_options& options = {}) {
  const auto job = detail::plan_normalize(pixels, numbers, options);
  static_cast<void>(pixels.host());    // throws for a column in device memory and names it
  static_cast<void>(numbers.host());
#ifdef __x86_64__
  if (detail::avx2_normalizer::usable()) return detail::avx2_normalizer::run(job);
#endif
  detail::table_normalizer::run(job);
}

}}  // namespace millrace

#include <millrace/simd/precise_end.inc>
