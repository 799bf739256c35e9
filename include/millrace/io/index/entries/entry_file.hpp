// Reads the entry points (positions where a decoder may start, see shard_index.hpp) in the file of an index.
//
//   mr::detail::entry_cache cache({.limit_bytes = std::size_t{8} << 20});
//   const std::string name = "train-000.tar.millrace-index";
//   mr::detail::entry_file entries({.storage = place, .name = name, .shard = 7}, meter, cache);
//   mr::detail::indexed_reader reader(source, index, pool, {}, &entries);
//
// A local file is read without a buffer, because the system caches the neighboring bytes. A file in a storage is read
// in chunks of 256 KiB. The chunks are cached for the neighboring payloads. The chunks of all files of a data set share
// one memory limit. If the limit is exceeded, the least recently used chunk is discarded.
// Errors: io_error if the file cannot be opened or read. Threads: one thread at a time per file, but any number of
// threads per cache.
// Lifetime: meter and cache must outlive the file.
#pragma once

#include <millrace/io/file/metered_file.hpp>

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

/// A cache of chunks of index files. The memory of the cache is limited.
class entry_cache {
 public:
  struct options {
    std::size_t limit_bytes = 0;
  };
  using chunk = std::shared_ptr<const std::vector<std::byte>>;
  using chunk_name = std::pair<std::uint64_t, std::uint64_t>;   // numbers of the shard, and of the chunk in the file
  static constexpr std::size_t chunk_bytes = std::size_t{256} << 10;

  explicit entry_cache(options o) : limit_bytes_(o.limit_bytes) {}

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
  entry_file(const entry_file_options& o, read_meter& meter, entry_cache& cache);

  std::string_view name() const noexcept override { return file_.name(); }
  std::size_t read_at(std::uint64_t offset_bytes, std::span<std::byte> buffer) override;
  /// Announces to a storage the chunks that will be read.
  void will_read(std::span<const byte_range> ranges) override;
  void set_meter(read_meter& meter) noexcept { file_.set_meter(meter); }

 private:
  entry_cache::chunk chunk_at(std::uint64_t offset_bytes);

  metered_file file_;
  entry_cache& cache_;
  const bool local_;
  const std::uint64_t shard_;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/index/entries/impl/entry_file.inl>
#endif
