// The options of a cache on a local disk, and the figures of its work.
//
//   mr::cached data(vault(), {.folder = "/scratch/mr", .bytes = 500'000'000'000, .keep_free_share = 0.05});
//   auto flow = mr::shards("vault:train-{000..146}.tar", {.storage = data});
//   std::puts(data.figures().text().c_str());
//
// Errors: none here; cached.hpp says which options are refused. Threads: values.
#pragma once

#include <millrace/base/format.hpp>
#include <millrace/base/notice.hpp>

#include <condition_variable>   // std::chrono's durations; <chrono> adds a calendar
#include <cstdint>
#include <optional>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of a cache.
struct cache_options {
  std::string folder{};   ///< a folder on a local disk; the cache makes its own subfolder there. Empty: no cache
  std::optional<std::uint64_t> bytes{};   ///< limit of all that the cache has on the disk
  double keep_free_share = 0.05;   ///< the share of the file system that stays free, from 0 to 1
  /// How long a read waits for another process that fetches the same bytes.
  std::chrono::nanoseconds wait_limit = std::chrono::seconds(30);
  unsigned ahead_files = 2;        ///< files that are fetched at a time before they are read; 0: none
  std::uint64_t ahead_bytes = 16'000'000'000;   ///< bytes fetched before they are read; at most half of `bytes`
  notice_function notice{};   ///< receives each notice, on any thread; empty: stderr
};

/// Counts of what one cache did in this process.
struct cache_figures {
  std::uint64_t given_bytes = 0;       ///< bytes that were given to readers, wherever they came from
  std::uint64_t fetched_bytes = 0;     ///< bytes that were read from the storage below, to be kept
  std::uint64_t ahead_bytes = 0;       ///< of those, bytes that were fetched before they were asked for
  std::uint64_t passed_bytes = 0;      ///< bytes that were read from the storage below, and not kept
  std::uint64_t written_bytes = 0;     ///< bytes that were written to the cache, with the heads of blocks
  std::uint64_t hits = 0;              ///< blocks that were found when they were asked for
  std::uint64_t misses = 0;            ///< blocks that were fetched
  std::uint64_t waits = 0;             ///< blocks for whose fetching by somebody else a read waited
  std::uint64_t waits_given_up = 0;    ///< of those, how many took too long
  std::uint64_t evictions = 0;         ///< blocks that made room for others
  std::uint64_t evicted_bytes = 0;     ///< their bytes
  std::uint64_t damaged_blocks = 0;    ///< blocks with a wrong checksum; each was removed
  std::uint64_t refusals = 0;          ///< blocks for which there was no room, or which could not be written
  std::uint64_t files_without_version = 0;   ///< opened files that were not cached, for their storage tells no version

  /// Returns the share of the given bytes that did not have to be read from the storage below; 0 if none were given.
  double share() const noexcept {
    const double given = static_cast<double>(given_bytes);
    const double below = static_cast<double>(fetched_bytes) + static_cast<double>(passed_bytes);
    return given > below ? (given - below) / given : 0;
  }
  /// Returns the figures as a sentence.
  std::string text() const {
    const auto bytes = [](std::uint64_t n) { return detail::bytes_text(static_cast<double>(n)); };
    const auto counted = [](std::uint64_t n, const char* one, const char* many) {
      return n == 0 ? std::string() : "; " + std::to_string(n) + (n == 1 ? one : many);
    };
    return detail::percent(share()) + " of " + bytes(given_bytes) + " came from the cache; " + bytes(fetched_bytes) +
           " fetched, " + bytes(passed_bytes) + " passed through" +
           counted(evictions, " block made room for others", " blocks made room for others") +
           counted(waits, " wait for another process", " waits for another process") +
           counted(waits_given_up, " wait given up", " waits given up") +
           counted(damaged_blocks, " damaged block fetched again", " damaged blocks fetched again") +
           counted(refusals, " block without room", " blocks without room") +
           counted(files_without_version, " file without a version", " files without a version");
  }
};

}}  // namespace millrace
