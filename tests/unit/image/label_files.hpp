// Label maps as files: PGM and .npy, and maps whose samples are all different.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace slow {

/// Rows of samples.
struct labels {
  std::size_t width = 0, height = 0;
  std::vector<std::uint16_t> samples{};

  /// Sample (y, x) is y * width + x, cut to 16 bits.
  static labels of_numbers(std::size_t width, std::size_t height) {
    labels result{.width = width, .height = height};
    for (std::size_t i = 0; i < width * height; ++i) result.samples.push_back(static_cast<std::uint16_t>(i));
    return result;
  }
};

inline std::string bytes_of(const labels& map, int bits, bool big_endian) {
  std::string text;
  for (const unsigned sample : map.samples) {
    const char low = static_cast<char>(sample & 255), high = static_cast<char>(sample >> 8);
    if (bits == 16 && big_endian) text += high;
    text += low;
    if (bits == 16 && !big_endian) text += high;
  }
  return text;
}

inline std::string pgm(const labels& map, int bits) {
  return "P5\n# a comment\n" + std::to_string(map.width) + " " + std::to_string(map.height) + "\n" +
         (bits == 8 ? "255\n" : "65535\n") + bytes_of(map, bits, true);
}

inline std::string npy(const std::string& type, const std::string& shape, const std::string& elements) {
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
  header += std::string((64 - (header.size() + 11) % 64) % 64, ' ') + "\n";
  return std::string("\x93NUMPY\x01\0", 8) + static_cast<char>(header.size() & 255) +
         static_cast<char>(header.size() >> 8) + header + elements;
}

inline std::string npy(const labels& map, int bits) {
  return npy(bits == 8 ? "|u1" : "<u2", "(" + std::to_string(map.height) + ", " + std::to_string(map.width) + ")",
             bytes_of(map, bits, false));
}

}  // namespace slow
