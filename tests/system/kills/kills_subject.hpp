// The kinds of files that are written under kill -9, with their writers and checks.
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
  std::uint64_t count;   // of one run
  /// Continues after the first records. Calls acknowledge() for each safe record.
  void (*write)(const records& range);
  /// Returns the number of records. Throws if it is less than `acknowledged`, or if a record differs.
  std::uint64_t (*check)(const std::string& folder, std::uint64_t acknowledged);
  /// True if a run removes the temporary files of killed runs.
  bool cleans;
};

/// kills_files.cpp: shards, notes, indexes, checksums, set indexes, sessions, reports; blocks of a cache.
std::span<const kind> file_kinds();
std::span<const kind> cache_kinds();
/// kills_subject.cpp: append-only files.
std::span<const kind> line_kinds();

/// Reports on standard output, without a buffer, that the record is safe.
void acknowledge(std::uint64_t record);

[[noreturn]] inline void wrong(const std::string& what) {
  throw millrace::data_error(what, "Repeat it with the same seed and kind");
}

/// A record's text, of up to many pages, so that kills can interrupt a write.
inline std::string long_text(std::uint64_t number, std::uint64_t max_bytes) {
  const char letter = static_cast<char>('a' + number % 26);
  return std::to_string(number) + ':' + std::string(number * 7'919'013 % max_bytes, letter);
}

inline std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
