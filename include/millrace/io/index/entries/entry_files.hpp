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

#include <millrace/io/file/metered_file.hpp>
#include <millrace/io/index/format/index_file.hpp>
#include <millrace/io/index/read/indexed_reader.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/measure/values/event_counts.hpp>
#include <millrace/measure/values/event_names.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Reads the entry points (positions where a decoder may start, see shard_index.hpp) in the file of an index.
//
// A local file is read without a buffer, because the system caches the neighboring bytes. A file in a storage is read
// in chunks of 256 KiB. The chunks are cached, because later reads often need neighboring bytes. The chunks of all
// files of a data set share one memory limit. If the limit is exceeded, the least recently used chunk is discarded.
// Errors: io_error if the file cannot be opened or read. Threads: one thread at a time per file, but any number of
// threads per cache.
// Lifetime: meter and cache must outlive the file.

/// A cache of chunks of index files. The memory of the cache is limited.
class entry_file_cache {
 public:
  struct options {
    std::size_t limit_bytes = 0;
  };
  using chunk = std::shared_ptr<const std::vector<std::byte>>;
  using chunk_name = std::pair<std::uint64_t, std::uint64_t>;   // number of the shard; number of the chunk in the file
  static constexpr std::size_t chunk_bytes = std::size_t{256} << 10;

  explicit entry_file_cache(options o) : limit_bytes_(o.limit_bytes) {}

  /// Returns the chunk, or null if it is not cached.
  chunk find(const chunk_name& name);
  /// Adds a chunk. Discards the least recently used chunks if necessary.
  void add(const chunk_name& name, chunk added);
  /// Sets the limit in bytes. The next add() applies the limit.
  void limit(std::size_t bytes);
  std::size_t held_bytes() const;

 private:
  struct cached_chunk {
    chunk bytes{};
    std::uint64_t used_at = 0;
  };

  mutable std::mutex mutex_;   // guards all members below
  std::size_t limit_bytes_;
  std::map<chunk_name, cached_chunk> chunks_;
  std::size_t held_bytes_ = 0;
  std::uint64_t used_ = 0;
};

/// The location of an index file, and the number of its shard.
struct entry_file_options {
  const millrace::storage& storage;
  std::string name{};
  std::uint64_t shard = 0;
};

/// One open index file.
class entry_file final : public byte_source {
 public:
  /// Opens the file. Throws io_error if the file cannot be opened.
  entry_file(const entry_file_options& o, read_meter& meter, entry_file_cache& cache);

  std::string_view name() const noexcept override { return file_.name(); }
  std::size_t read_at(std::uint64_t offset_bytes, std::span<std::byte> buffer) override;
  /// Announces to a storage the uncached chunks that contain `ranges`. Does nothing for a local file.
  void will_read(std::span<const byte_range> ranges) override;
  void set_meter(read_meter& meter) noexcept { file_.set_meter(meter); }

 private:
  entry_file_cache::chunk chunk_at(std::uint64_t offset_bytes);

  metered_file file_;
  entry_file_cache& cache_;
  const bool local_;
  const std::uint64_t shard_;
};

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
  /// Counts a shard whose index file cannot be opened. The shard counts as one field with wrong entry points.
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
  /// Computes the memory limit of the entry_file_cache from `l`. Sets the limit, and returns it in bytes.
  std::size_t limit(const limits& l) {
    // The entry points of the samples in a lane's shuffle window are in one or two chunks.
    const std::uint64_t bytes_of_lanes = 2 * std::min<std::uint64_t>(l.lanes, 1 << 20) * entry_file_cache::chunk_bytes;
    const auto bytes = static_cast<std::size_t>(
        std::clamp<std::uint64_t>(bytes_of_lanes, min_bytes, std::max(min_bytes, l.max_held_bytes / 2)));
    cache_.limit(bytes);
    return bytes;
  }

 private:
  static constexpr std::size_t min_bytes = std::size_t{8} << 20;

  entry_file_cache cache_{{.limit_bytes = min_bytes}};
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/index/entries/impl/entry_files.inl>
#endif
