// Pixels to numbers on the host: u8 NHWC to f32, f16 or bf16, NHWC or NCHW, as (x / 255 - mean) / std per channel.
//
//   mr::normalize(pixels, numbers, {.mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225},
//                                   .layout = mr::image_layout::nchw});
//
// Shapes: pixels [B, H, W, C] with C of 1 to 4; numbers [B, H, W, C] or [B, C, H, W]. mean and std are in units of full
// scale (0..1), as torchvision writes them; the first C values count. Every result is fma(x, scale, bias) with
// scale = 1 / (255 std) and bias = -mean / std, rounded to f32 once, then to nearest even where f16 or bf16 is asked
// for: the same bits on every CPU, compiler and path. Uses AVX2 where the CPU has it, else a table of 256 values per
// channel. Errors: setup_error for shapes that do not fit, memory of a device, and a std that is no positive number.
// Threads: none shared; a large batch may be cut along B. Large results bypass the cache.
#pragma once

#include <millrace/item/tensor.hpp>

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace millrace::inline MILLRACE_ABI {

enum class image_layout : std::uint8_t { nhwc, nchw };

struct normalize_options {
  std::array<double, 4> mean{};                         ///< per channel, 0..1
  std::array<double, 4> std = {1, 1, 1, 1};             ///< likewise
  image_layout layout = image_layout::nhwc;             ///< of the result
};

namespace detail {

/// To nearest, halves to even. No NaN comes here.
inline bf16 to_bf16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return {static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

inline f16 to_f16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  const auto made = [sign](std::uint32_t m) { return f16{static_cast<std::uint16_t>(sign | m)}; };
  constexpr std::uint32_t overflow = 0x477ff000;   // 65520, halfway between the largest f16 and the next
  constexpr std::uint32_t least_normal = 0x38800000;   // 2^-14
  if (magnitude >= overflow) return made(0x7c00);
  if (magnitude >= least_normal) {
    const std::uint32_t rebased = magnitude - (std::uint32_t{127 - 15} << 23);
    return made((rebased + 0xfff + (rebased >> 13 & 1)) >> 13);
  }
  // Subnormal: a multiple of 2^-24. Adding 0.5 makes the FPU round there, to nearest even in every build.
  const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
  return made(std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5F));
}

template <class T>
T to_element(float value) noexcept {
  if constexpr (std::is_same_v<T, f16>) return to_f16(value);
  else if constexpr (std::is_same_v<T, bf16>) return to_bf16(value);
  else return value;
}

template <class T>
concept normalized_element = std::is_same_v<T, float> || std::is_same_v<T, f16> || std::is_same_v<T, bf16>;

template <class T>
struct normalize_job {
  const std::uint8_t* in = nullptr;
  T* out = nullptr;
  std::size_t images = 0, pixels = 0, channels = 0;   // pixels of one image
  bool planar = false;                                // NCHW
  std::array<float, 4> scale{}, bias{};

  T value(std::uint8_t x, std::size_t channel) const noexcept {
    return to_element<T>(std::fma(static_cast<float>(x), scale[channel], bias[channel]));
  }
};

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

/// Eight numbers at a time. Members carry the target themselves, so that a build for any x86-64 has them.
struct avx2_normalizer {
  static bool usable() noexcept {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    const bool half_floats = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
    return half_floats && __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  }

  template <class T>
  static void run(const normalize_job<T>& job) {
    // Beyond what caches hold, reading the result's lines only to overwrite them costs more than it helps.
    constexpr std::size_t large_bytes = std::size_t{8} << 20;
    const bool streams = job.images * job.pixels * job.channels * sizeof(T) >= large_bytes;
    switch (job.channels) {
      case 1: interleaved<T, 1>(job, streams); break;
      case 2: job.planar ? planar<T, 2>(job, streams) : interleaved<T, 2>(job, streams); break;
      case 3: job.planar ? planar<T, 3>(job, streams) : interleaved<T, 3>(job, streams); break;
      default: job.planar ? planar<T, 4>(job, streams) : interleaved<T, 4>(job, streams); break;
    }
    _mm_sfence();
  }

 private:
  template <class T>
  static constexpr std::size_t alignment_bytes = 8 * sizeof(T);   // of a store of eight

  template <class T>
  [[gnu::target("avx2,fma,f16c"), gnu::always_inline]] static inline void store(T* to, __m256 v, bool streams) noexcept {
    if constexpr (std::is_same_v<T, float>) {
      streams ? _mm256_stream_ps(to, v) : _mm256_storeu_ps(to, v);
    } else {
      __m128i half;
      if constexpr (std::is_same_v<T, f16>) {
        half = _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
      } else {
        const __m256i bits = _mm256_castps_si256(v);
        const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
        const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
        const __m256i upper = _mm256_srli_epi32(rounded, 16);
        half = _mm_packus_epi32(_mm256_castsi256_si128(upper), _mm256_extracti128_si256(upper, 1));
      }
      auto* place = reinterpret_cast<__m128i*>(to);
      streams ? _mm_stream_si128(place, half) : _mm_storeu_si128(place, half);
    }
  }

  [[gnu::target("avx2,fma,f16c"), gnu::always_inline]] static inline __m256 scaled(__m128i bytes, __m256 scale,
                                                                                   __m256 bias) noexcept {
    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)), scale, bias);
  }

  /// Elements until `out` is aligned for a store of eight.
  template <class T>
  static std::size_t to_alignment(const T* out) noexcept {
    const auto past = reinterpret_cast<std::uintptr_t>(out) % alignment_bytes<T>;
    return past == 0 ? 0 : (alignment_bytes<T> - past) / sizeof(T);
  }

  /// The whole batch is one run of elements; the channels' factors repeat every `Channels` vectors.
  template <class T, std::size_t Channels>
  [[gnu::target("avx2,fma,f16c")]] static void interleaved(const normalize_job<T>& job, bool streams) {
    const std::size_t count = job.images * job.pixels * Channels;
    std::size_t i = 0;
    for (const std::size_t head = to_alignment(job.out); i < head && i < count; ++i)
      job.out[i] = job.value(job.in[i], i % Channels);
    __m256 scale[Channels], bias[Channels];
    for (std::size_t k = 0; k < Channels; ++k) {
      alignas(32) float s[8], b[8];
      for (std::size_t lane = 0; lane < 8; ++lane) {
        s[lane] = job.scale[(i + 8 * k + lane) % Channels];
        b[lane] = job.bias[(i + 8 * k + lane) % Channels];
      }
      scale[k] = _mm256_load_ps(s);
      bias[k] = _mm256_load_ps(b);
    }
    for (; i + 8 * Channels <= count; i += 8 * Channels)
      for (std::size_t k = 0; k < Channels; ++k) {
        const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(job.in + i + 8 * k));
        store(job.out + i + 8 * k, scaled(bytes, scale[k], bias[k]), streams);
      }
    for (; i < count; ++i) job.out[i] = job.value(job.in[i], i % Channels);
  }

  /// Eight pixels lie in two overlapping vectors; a shuffle of each picks a channel.
  template <class T, std::size_t Channels>
  [[gnu::target("avx2,fma,f16c")]] static void planar(const normalize_job<T>& job, bool streams) {
    static_assert(Channels >= 2);
    constexpr std::size_t second_at = 8 * Channels - 16;
    __m128i first_mask[Channels], second_mask[Channels];
    __m256 scale[Channels], bias[Channels];
    for (std::size_t c = 0; c < Channels; ++c) {
      alignas(16) std::uint8_t first[16], second[16];
      for (std::size_t p = 0; p < 16; ++p) {
        const std::size_t at = p * Channels + c;
        constexpr std::uint8_t nothing = 0x80;
        first[p] = p < 8 && at < 16 ? static_cast<std::uint8_t>(at) : nothing;
        second[p] = p < 8 && at >= 16 ? static_cast<std::uint8_t>(at - second_at) : nothing;
      }
      first_mask[c] = _mm_load_si128(reinterpret_cast<const __m128i*>(first));
      second_mask[c] = _mm_load_si128(reinterpret_cast<const __m128i*>(second));
      scale[c] = _mm256_set1_ps(job.scale[c]);
      bias[c] = _mm256_set1_ps(job.bias[c]);
    }
    streams = streams && job.pixels * sizeof(T) % alignment_bytes<T> == 0;   // else the planes are aligned differently
    for (std::size_t image = 0; image < job.images; ++image) {
      const std::uint8_t* in = job.in + image * job.pixels * Channels;
      T* out = job.out + image * job.pixels * Channels;
      const auto one = [&](std::size_t p) {
        for (std::size_t c = 0; c < Channels; ++c) out[c * job.pixels + p] = job.value(in[p * Channels + c], c);
      };
      std::size_t p = 0;
      for (const std::size_t head = to_alignment(out); p < head && p < job.pixels; ++p) one(p);
      for (; p + 8 <= job.pixels; p += 8) {
        const __m128i first = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + p * Channels));
        const __m128i second = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + p * Channels + second_at));
        for (std::size_t c = 0; c < Channels; ++c) {
          const __m128i bytes = _mm_or_si128(_mm_shuffle_epi8(first, first_mask[c]), _mm_shuffle_epi8(second, second_mask[c]));
          store(out + c * job.pixels + p, scaled(bytes, scale[c], bias[c]), streams);
        }
      }
      for (; p < job.pixels; ++p) one(p);
    }
  }
};

#endif

/// Checks the call and turns its options into factors.
template <normalized_element T>
normalize_job<T> plan_normalize(const tensor_view<const std::uint8_t, 4>& pixels, const tensor_view<T, 4>& numbers,
                                const normalize_options& options) {
  const auto [images, height, width, channels] = pixels.shape;
  const bool planar = options.layout == image_layout::nchw;
  const std::array<std::size_t, 4> expected =
      planar ? std::array{images, channels, height, width} : std::array{images, height, width, channels};
  if (channels < 1 || channels > 4)
    throw setup_error("normalize was given pixels of shape " + to_string(pixels.shape), "Give [B, H, W, 1 to 4]");
  if (numbers.shape != expected)
    throw setup_error("normalize was given pixels of shape " + to_string(pixels.shape) + " and numbers of shape " +
                          to_string(numbers.shape), "The numbers have to be " + to_string(expected));
  normalize_job<T> job{.in = pixels.host().data(), .out = numbers.host().data(), .images = images,
                       .pixels = height * width, .channels = channels, .planar = planar && channels > 1};
  for (std::size_t c = 0; c < channels; ++c) {
    job.scale[c] = static_cast<float>(1 / (255 * options.std[c]));
    job.bias[c] = static_cast<float>(-options.mean[c] / options.std[c]);
    const float largest = std::fma(255.0F, job.scale[c], job.bias[c]);
    if (!(options.std[c] > 0) || !std::isfinite(job.scale[c]) || !std::isfinite(job.bias[c]) || !std::isfinite(largest))
      throw setup_error("normalize was given mean " + std::to_string(options.mean[c]) + " and std " +
                            std::to_string(options.std[c]) + " for channel " + std::to_string(c),
                        "Give finite numbers, std above 0, in units of full scale (0..1)");
  }
  return job;
}

}  // namespace detail

template <detail::normalized_element T>
void normalize(const tensor_view<const std::uint8_t, 4>& pixels, const tensor_view<T, 4>& numbers,
               const normalize_options& options = {}) {
  const auto job = detail::plan_normalize(pixels, numbers, options);
#ifdef __x86_64__
  if (detail::avx2_normalizer::usable()) return detail::avx2_normalizer::run(job);
#endif
  detail::table_normalizer::run(job);
}

}  // namespace millrace::inline MILLRACE_ABI
