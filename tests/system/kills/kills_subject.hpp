// What is written under kill -9, kind by kind: how, and what has to be found afterwards.
//
//   for (const kind& k : line_kinds()) k.write({.folder = folder, .first = 7, .count = 60});
//   const std::uint64_t records = k.check(folder, 7);
#pragma once

#include <millrace/base/error.hpp>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

/// Records [first, first + count) of a folder.
struct records {
  std::string folder{};
  std::uint64_t first = 0, count = 0;
};

struct kind {
  const char* name;
  std::uint64_t count;   // records of one run
  /// Goes on behind the first records. Calls acknowledge() for each record that is safe.
  void (*write)(const records& wanted);
  /// Returns how many records there are. Throws if fewer than `acknowledged`, or if one is not as it was written.
  std::uint64_t (*check)(const std::string& folder, std::uint64_t acknowledged);
  /// True if a run removes the temporary files of those that were killed before it.
  bool cleans;
};

/// kills_files.cpp: shards, notes, indexes, checksums, sessions, reports.
std::span<const kind> file_kinds();
/// kills_cache.cpp: blocks of a cache.
std::span<const kind> cache_kinds();
/// kills_lines.cpp: what is appended to.
std::span<const kind> line_kinds();

/// Tells whoever reads standard output that the record is safe. It has no buffer.
void acknowledge(std::uint64_t record);

[[noreturn]] inline void wrong(const std::string& what) {
  throw millrace::data_error(what, "Repeat it with the same seed and kind");
}

/// A record's text: its length is anything up to many pages, so that a kill falls into the middle of a write.
inline std::string long_text(std::uint64_t number, std::uint64_t max_bytes) {
  const char letter = static_cast<char>('a' + number % 26);
  return std::to_string(number) + ':' + std::string(number * 7'919'013 % max_bytes, letter);
}

inline std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
