// The options of a cache on a local disk, and its statistics.
//
//   mr::cached data(vault(), {.folder = "/scratch/mr", .bytes = 500'000'000'000, .keep_free_share = 0.05});
//   auto flow = mr::shards("vault:train-{000..146}.tar", {.storage = data});
//   std::puts(data.statistics().text().c_str());
//
// Errors: none here; cached.hpp lists the invalid options. Threads: not synchronized.
#pragma once

#include <millrace/base/format.hpp>
#include <millrace/base/notice.hpp>

#include <condition_variable>   // for std::chrono's durations, without the calendar of <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of a cache.
struct cache_options {
  /// The local folder in which the cache creates its subfolder. If empty, mr::remote() caches nothing, and mr::cached
  /// throws setup_error.
  std::string folder{};
  std::optional<std::uint64_t> bytes{};   ///< maximum bytes of the cache on the disk; no maximum if unset
  double keep_free_share = 0.05;          ///< share of the file system that the cache leaves free, from 0 to 1
  /// Maximum time that a read waits for another process that is fetching the same bytes.
  std::chrono::nanoseconds wait_limit = std::chrono::seconds(30);
  unsigned prefetched_files = 2;   ///< files that are prefetched concurrently; 0 disables prefetching
  /// Maximum number of bytes that are prefetched but not yet read. If this is more than half of `bytes`, half of
  /// `bytes` is the maximum instead.
  std::uint64_t prefetched_bytes = 16'000'000'000;
  notice_function notice{};   ///< receives each notice, on any thread; if empty, notices are written to stderr
};

/// Statistics of one cache in this process.
struct cache_statistics {
  std::uint64_t delivered_bytes = 0;    ///< bytes that readers received, from the cache and from the storage
  std::uint64_t fetched_bytes = 0;      ///< bytes read from the remote storage to be stored in the cache
  std::uint64_t prefetched_bytes = 0;   ///< prefetched part of fetched_bytes
  std::uint64_t uncached_bytes = 0;     ///< bytes read from the remote storage and not cached
  std::uint64_t written_bytes = 0;      ///< bytes written to the cache, including the heads of blocks
  std::uint64_t hits = 0;               ///< requested blocks that the cache contained
  std::uint64_t misses = 0;             ///< blocks that a read fetched, because the cache did not contain them
  std::uint64_t waits = 0;              ///< blocks for which a read waited while another thread or process fetched them
  std::uint64_t waits_given_up = 0;     ///< waits that ended at wait_limit
  std::uint64_t evictions = 0;          ///< evicted blocks
  std::uint64_t evicted_bytes = 0;      ///< bytes of the evicted blocks
  std::uint64_t damaged_blocks = 0;     ///< blocks with a wrong checksum; each was removed
  std::uint64_t refusals = 0;           ///< blocks that did not fit or could not be written
  /// Opened files that were not cached because the storage returned no version.
  std::uint64_t files_without_version = 0;

  /// Returns the share of delivered_bytes that was read from the cache. Returns 0 if delivered_bytes is 0.
  double share() const noexcept {
    const double delivered = static_cast<double>(delivered_bytes);
    const double below = static_cast<double>(fetched_bytes) + static_cast<double>(uncached_bytes);
    return delivered > below ? (delivered - below) / delivered : 0;
  }
  /// Returns the statistics as a sentence.
  std::string text() const {
    const auto bytes = [](std::uint64_t n) { return detail::bytes_text(static_cast<double>(n)); };
    const auto counted = [](std::uint64_t n, const char* one, const char* many) {
      return n == 0 ? std::string() : "; " + std::to_string(n) + (n == 1 ? one : many);
    };
    return detail::percent(share()) + " of " + bytes(delivered_bytes) + " read from the cache; " +
           bytes(fetched_bytes) + " fetched, " + bytes(uncached_bytes) + " bypassed the cache" +
           counted(evictions, " block evicted", " blocks evicted") +
           counted(waits, " wait for another process", " waits for another process") +
           counted(waits_given_up, " wait abandoned", " waits abandoned") +
           counted(damaged_blocks, " damaged block fetched again", " damaged blocks fetched again") +
           counted(refusals, " block not stored", " blocks not stored") +
           counted(files_without_version, " file without a version", " files without a version");
  }
};

}}   // namespace millrace
