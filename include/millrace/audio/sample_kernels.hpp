// Loops over audio samples: conversions between sample types, gain, and the mean of the channels.
//
//   mr::detail::convert_samples<std::int16_t>(bytes, floats, [](std::int16_t v) { return 0x1p-15F * v; });
//   mr::detail::store_samples(floats, row);              // as f32 or i16
//
// The loops process blocks of 64 samples in local arrays, so that compilers vectorize the loops at -O2. The bits of the
// results do not depend on the compiler or its flags.
// Errors: none. Threads: pure functions; any thread.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

inline constexpr std::size_t sample_block = 64;

/// Writes convert(sample) for samples of type From that begin at `from`, which needs no alignment.
template <class From, class To, class Convert>
void convert_samples(const std::byte* from, std::span<To> to, const Convert& convert) noexcept {
  std::size_t at = 0;
  for (; at + sample_block <= to.size(); at += sample_block) {
    From in[sample_block];
    To out[sample_block];
    std::memcpy(in, from + at * sizeof(From), sizeof in);
    for (std::size_t i = 0; i < sample_block; ++i) out[i] = convert(in[i]);
    std::memcpy(to.data() + at, out, sizeof out);
  }
  for (; at < to.size(); ++at) {
    From one;
    std::memcpy(&one, from + at * sizeof(From), sizeof one);
    to[at] = convert(one);
  }
}

/// Converts little-endian samples of 24 bits.
inline void convert_24_bits(const std::byte* from, std::span<float> to) noexcept {
  for (std::size_t i = 0; i < to.size(); ++i) {
    std::uint16_t low;
    std::memcpy(&low, from + 3 * i, sizeof low);
    const auto high = static_cast<std::int8_t>(from[3 * i + 2]);
    to[i] = 0x1p-23F * static_cast<float>(std::int32_t{high} * 65'536 + low);
  }
}

/// Returns the sample as i16: rounded to nearest, ties to even, and limited to the range of i16. NaN becomes 0.
inline std::int16_t to_i16(float sample) noexcept {
  float v = 0x1p15F * sample;
  v = v == v ? v : 0.0F;
  v = v < 32'767.0F ? v : 32'767.0F;
  v = v > -32'768.0F ? v : -32'768.0F;
  // The sum is so large that it has no fraction bits: the addition rounds. The lowest 16 bits of the sum are the
  // integer in two's complement.
  return static_cast<std::int16_t>(__builtin_bit_cast(std::uint32_t, v + 0x1.8p23F));
}

inline void store_samples(std::span<const float> from, std::span<float> to) noexcept {
  if (!to.empty()) std::memcpy(to.data(), from.data(), to.size_bytes());
}
inline void store_samples(std::span<const float> from, std::span<std::int16_t> to) noexcept {
  convert_samples<float>(reinterpret_cast<const std::byte*>(from.data()), to, to_i16);
}

inline void scale_samples(std::span<float> samples, float factor) noexcept {
  convert_samples<float>(reinterpret_cast<const std::byte*>(samples.data()), samples,
                         [factor](float v) { return v * factor; });
}

/// Replaces each frame (one sample of each channel) by the mean of its samples. Returns the shortened span, with one
/// sample per frame.
inline std::span<float> mix_channels(std::span<float> samples, std::size_t channels) noexcept {
  const std::size_t frames = samples.size() / channels;
  if (channels == 2) {
    struct pair {
      float left, right;
    };
    convert_samples<pair>(reinterpret_cast<const std::byte*>(samples.data()), samples.first(frames),
                          [](pair p) { return 0.5F * (p.left + p.right); });
  } else {
    for (std::size_t i = 0; i < frames; ++i) {
      double sum = 0;
      for (std::size_t c = 0; c < channels; ++c) sum += static_cast<double>(samples[i * channels + c]);
      samples[i] = static_cast<float>(sum / static_cast<double>(channels));
    }
  }
  return samples.first(frames);
}

/// Replaces each frame by its sample of one channel. Returns the shortened span, with one sample per frame.
inline std::span<float> select_channel(std::span<float> samples, std::size_t channels, std::size_t channel) noexcept {
  const std::size_t frames = samples.size() / channels;
  for (std::size_t i = 0; i < frames; ++i) samples[i] = samples[i * channels + channel];
  return samples.first(frames);
}

}}}   // namespace millrace::detail

#include <millrace/simd/precise_end.inc>
