// Bytes that do not belong in a JPEG, and the places for them.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace slow {

using file_bytes = std::vector<std::byte>;

inline file_bytes with(file_bytes file, std::size_t at, std::string_view junk) {
  const auto bytes = std::as_bytes(std::span(junk));
  file.insert(file.begin() + static_cast<std::ptrdiff_t>(at), bytes.begin(), bytes.end());
  return file;
}

/// The offsets of the segments before the first scan, and of that scan, without the first segment: there every reader
/// expects ff d8 ff.
inline std::vector<std::size_t> segments_of(const file_bytes& file) {
  std::vector<std::size_t> all;
  for (std::size_t at = 2;;) {
    if (at > 2) all.push_back(at);
    if (std::to_integer<int>(file[at + 1]) == 0xda) return all;
    at += 2 + (std::to_integer<std::size_t>(file[at + 2]) << 8) + std::to_integer<std::size_t>(file[at + 3]);
  }
}

}  // namespace slow
