// WAV files for tests, and a second decoder, which reads one sample at a time.
//
//   const std::string file = slow::wav_file({.coding = slow::i24, .channels = 2, .rate = 8'000}, samples);
//   slow::samples_of(file)        // f32, interleaved
#pragma once

#include <millrace/base/random.hpp>
#include <millrace/item/bytes.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace slow {

namespace mr = millrace;

enum coding { u8, i16, i24, i32, f32, f64 };
inline constexpr coding all_codings[] = {u8, i16, i24, i32, f32, f64};
inline constexpr std::size_t bytes_of_coding[] = {1, 2, 3, 4, 4, 8};

/// A number of `size` bytes, little-endian.
inline std::string number(std::uint64_t value, std::size_t size) {
  std::string text;
  for (std::size_t i = 0; i < size; ++i, value >>= 8) text += static_cast<char>(value & 255);
  return text;
}
inline std::string chunk(const std::string& name, const std::string& content) {
  return name + number(content.size(), 4) + content + std::string(content.size() % 2, '\0');
}

struct wav_form {
  slow::coding coding = i16;
  std::size_t channels = 1;
  std::uint32_t rate = 16'000;
  bool extensible = false;
};

inline std::string format_chunk(const wav_form& f) {
  const std::size_t bytes = bytes_of_coding[f.coding];
  const std::uint64_t tag = f.coding >= f32 ? 3 : 1;
  std::string text = number(f.extensible ? 0xfffe : tag, 2) + number(f.channels, 2) + number(f.rate, 4) +
                     number(f.rate * f.channels * bytes, 4) + number(f.channels * bytes, 2) + number(8 * bytes, 2);
  if (f.extensible)
    text += number(22, 2) + number(8 * bytes, 2) + number(0, 4) + number(tag, 2) +
            std::string("\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71", 14);
  return chunk("fmt ", text);
}
inline std::string riff(const std::string& chunks) { return "RIFF" + number(4 + chunks.size(), 4) + "WAVE" + chunks; }

/// A file with these bytes as samples.
inline std::string wav_file(const wav_form& f, const std::string& samples) {
  return riff(format_chunk(f) + chunk("data", samples));
}
/// A file of 16 bits with one channel.
inline std::string wav_file(const std::vector<std::int16_t>& samples, std::uint32_t rate = 16'000) {
  std::string data;
  for (const std::int16_t s : samples) data += number(static_cast<std::uint16_t>(s), 2);
  return wav_file({.rate = rate}, data);
}

/// Random samples; floats are from -2 to 2.
inline std::string random_samples(const wav_form& f, std::size_t frames, mr::rng& random) {
  std::string data;
  for (std::size_t i = 0; i < frames * f.channels; ++i) {
    const double v = random.uniform(-2, 2);
    if (f.coding == f32) data += number(std::bit_cast<std::uint32_t>(static_cast<float>(v)), 4);
    else if (f.coding == f64) data += number(std::bit_cast<std::uint64_t>(v), 8);
    else data += number(random.bits(), bytes_of_coding[f.coding]);
  }
  return data;
}

inline std::uint64_t number_at(const std::string& text, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i)
    value |= std::uint64_t{static_cast<unsigned char>(text.at(at + i))} << (8 * i);
  return value;
}

/// The samples of data of this coding, interleaved.
inline std::vector<float> samples_of(slow::coding coding, const std::string& data) {
  const std::size_t bytes = bytes_of_coding[coding];
  std::vector<float> samples;
  for (std::size_t at = 0; at + bytes <= data.size(); at += bytes) {
    const std::uint64_t bits = number_at(data, at, bytes);
    if (coding == f32) samples.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    else if (coding == f64) samples.push_back(static_cast<float>(std::bit_cast<double>(bits)));
    else {
      const double range = std::ldexp(1.0, static_cast<int>(8 * bytes));
      double value = static_cast<double>(bits);
      if (coding == u8) value -= 128;
      else if (value >= range / 2) value -= range;
      samples.push_back(static_cast<float>(value / (range / 2)));
    }
  }
  return samples;
}

/// A sample as i16.
inline std::int16_t as_i16(float sample) {
  const double scaled = std::nearbyint(double{sample} * 32'768);
  if (std::isnan(scaled)) return 0;
  return static_cast<std::int16_t>(std::fmax(-32'768, std::fmin(32'767, scaled)));
}

}  // namespace slow
