// Opens the index files that contain the entry points (positions where a decoder may start) of a data set. Counts the
// fields that are read with entry points. shard_index.hpp describes entry points.
//
//   mr::detail::entry_files entries;
//   entries.limit({.lanes = 48, .max_held_bytes = std::size_t{256} << 20});     // sets the limit of the cached chunks
//   auto file = entries.open({.files = options, .shard = name, .number = 7, .counts = used}, index, meter);
//   used.count(reader.counters(), reported);
//   used.report(counts);
//
// Errors: none. If a file cannot be opened, payloads are delivered without entry points. Threads: any thread. Lifetime:
// an entry_files must outlive the files that it opened.
#pragma once

#include <millrace/io/index/entries/entry_file.hpp>
#include <millrace/io/index/format/index_file.hpp>
#include <millrace/io/index/read/indexed_reader.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/measure/values/event_counts.hpp>
#include <millrace/measure/values/event_names.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The counts of a reader at the last call of entry_counts::count() for this reader.
struct reported_entries {
  std::uint64_t with_entries = 0, refused = 0;
};

/// Counts the fields with entry points, and the fields whose entry points are wrong.
class entry_counts {
 public:
  /// Adds the difference between `now` and `reported`. Sets `reported` to `now`.
  void count(const indexed_reader_counters& now, reported_entries& reported) noexcept {
    with_entries_.fetch_add(now.with_entries - std::exchange(reported.with_entries, now.with_entries),
                            std::memory_order_relaxed);
    refused_.fetch_add(now.entries_refused - std::exchange(reported.refused, now.entries_refused),
                       std::memory_order_relaxed);
  }
  /// Counts a shard whose entry points cannot be opened.
  void count_unopened() noexcept { refused_.fetch_add(1, std::memory_order_relaxed); }
  /// Adds to `counts` the numbers of fields since the last call.
  void report(event_counts& counts) noexcept {
    if (const auto fields = with_entries_.exchange(0, std::memory_order_relaxed))
      counts.count(text_of(event_name::fields_with_entries), fields);
    if (const auto fields = refused_.exchange(0, std::memory_order_relaxed))
      counts.count(text_of(event_name::fields_refused), fields);
  }

 private:
  std::atomic<std::uint64_t> with_entries_{0}, refused_{0};   // since the last report()
};

/// The shard whose entry points will be opened.
struct entries_of_shard {
  const index_file_options& files;
  const std::string& shard;
  std::uint64_t number = 0;   ///< number of the shard in the data set
  entry_counts& counts;
};

/// The entry points of all shards of a data set.
class entry_files {
 public:
  struct limits {
    std::uint64_t lanes = 1;   ///< lanes (substreams of the sample order) that are read concurrently
    std::size_t max_held_bytes = 0;
  };

  /// Returns the index file of a shard. Returns null if the index has no entry points, or the file cannot be opened.
  MILLRACE_RARE owner<entry_file> open(const entries_of_shard& shard, const shard_index& index, read_meter& meter) {
    const entry_table& table = index.entries();
    if (table.bytes() == 0) return nullptr;
    const millrace::storage local;
    try {
      return make_owner<entry_file>(
          entry_file_options{
              .storage = table.in_storage ? shard.files.storage : local,
              .name = table.in_storage ? shard.shard + std::string(index_ending) : index_path(shard.shard, shard.files),
              .shard = shard.number},
          meter, cache_);
    } catch (const io_error&) {
      shard.counts.count_unopened();
      return nullptr;
    }
  }
  /// Computes the memory limit for cached chunks from the number of lanes. Sets the limit, and returns it in bytes.
  std::size_t limit(const limits& l) {
    // The entry points of the samples in a lane's shuffle window are in one or two chunks.
    const std::uint64_t bytes_of_lanes = 2 * std::min<std::uint64_t>(l.lanes, 1 << 20) * entry_cache::chunk_bytes;
    const auto bytes = static_cast<std::size_t>(
        std::clamp<std::uint64_t>(bytes_of_lanes, min_bytes, std::max(min_bytes, l.max_held_bytes / 2)));
    cache_.limit(bytes);
    return bytes;
  }

 private:
  static constexpr std::size_t min_bytes = std::size_t{8} << 20;

  entry_cache cache_{{.limit_bytes = min_bytes}};
};

}}}   // namespace millrace::detail
