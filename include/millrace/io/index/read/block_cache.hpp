// Caches small samples: reads a block of neighboring samples together, and returns its records one by one in any order.
//
//   mr::detail::block_cache cache({.limit_bytes = std::size_t{64} << 20});
//   const auto read = [&](std::vector<mr::record>& block) { block = records_of(3, 7); };
//   cache.take({.shard = 3, .number = 7}, offsets, places, read);   // *places[i] = record offsets[i] of block 7
//   cache.held_bytes();
//
// `read` fills a vector with the records of a complete block. If `read` leaves a record empty, `take()` returns an
// empty record. Each record is returned once. If it is requested again, its block is read again. A block is removed
// when all its records have been returned. If the blocks exceed limit_bytes, the cache evicts the least recently
// requested block. An eviction costs another read, but loses no sample. reserve() is for remote blocks, many of which
// are fetched concurrently. A thread that needs a reserved block waits until the owner of the reservation has filled
// the block. A thread must fill its own reservations before it calls `take()`. Otherwise two threads might wait for
// each other.
// Errors: the exceptions of `read`. Threads: any number. If several threads need the same block, one of them reads it.
#pragma once

#include <millrace/item/record.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Identifies a block by its shard, and its number in the shard.
struct cached_block_name {
  std::uint64_t shard = 0;
  std::uint32_t number = 0;

  friend bool operator==(const cached_block_name&, const cached_block_name&) = default;
};

/// Blocks of records. A block is removed when take() has returned all its records.
class block_cache {
  struct block;

 public:
  struct options {
    std::size_t limit_bytes = 0;
  };

  explicit block_cache(options o) : options_(o) {}
  block_cache(const block_cache&) = delete;
  block_cache& operator=(const block_cache&) = delete;

  /// Moves the records `offsets` of the block to `places`. Offset 0 is the first record of the block. The offsets must
  /// differ. Calls `read(std::vector<record>&)` if one of these records is not in the cache.
  template <class Read>
  void take(const cached_block_name& name, std::span<const std::uint32_t> offsets, std::span<record* const> places,
            const Read& read) {
    const std::shared_ptr<block> s = find_or_add(name);
    const std::lock_guard lock(s->mutex);
    for (const std::uint32_t offset : offsets)
      if (offset >= s->records.size() || s->records[offset].empty()) {
        fill(*s, read);
        break;
      }
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      record& from = s->records[offsets[i]];
      s->left -= !from.empty();
      *places[i] = std::move(from);
    }
    if (s->left == 0) erase(name, *s);
  }

  /// The right to fill a block. Other threads that need the block wait until the reservation is destroyed.
  class reservation {
   public:
    const cached_block_name& name() const noexcept { return name_; }

   private:
    friend class block_cache;
    cached_block_name name_{};
    std::shared_ptr<block> block_{};
    std::unique_lock<std::mutex> lock_{};
  };

  /// Reserves a block. Returns nothing if the block is in the cache, is being read, or is reserved.
  std::optional<reservation> reserve(const cached_block_name& name);

  /// Reads a reserved block.
  template <class Read>
  void fill(reservation owned, const Read& read) {
    fill(*owned.block_, read);
  }

  /// Returns the bytes of all blocks in the cache. Returned records still count until their block is removed.
  std::size_t held_bytes() const;

 private:
  struct block {
    std::mutex mutex;   // guards the records
    std::vector<record> records{};
    std::size_t left = 0;    // number of records that `take()` has not returned
    std::size_t bytes = 0;   // this and the members below are guarded by the cache's mutex
    std::uint64_t requested_at = 0;
    bool evicted = false;
  };
  struct hash {
    std::size_t operator()(const cached_block_name& n) const noexcept;
  };

  std::shared_ptr<block> find_or_add(const cached_block_name& name);

  template <class Read>
  void fill(block& s, const Read& read) {
    s.records.clear();
    s.left = 0;
    read(s.records);
    std::size_t bytes = 0;
    for (const record& r : s.records) {
      s.left += !r.empty();
      bytes += r.held_bytes();
    }
    const std::lock_guard lock(mutex_);
    if (s.evicted) return;
    held_bytes_ += bytes - std::exchange(s.bytes, bytes);
    while (held_bytes_ > options_.limit_bytes && evict_oldest(s)) {}
  }

  bool evict_oldest(const block& except);
  void erase(const cached_block_name& name, block& s);

  const options options_;
  mutable std::mutex mutex_;   // guards all members below; locked after the mutex of a block
  std::unordered_map<cached_block_name, std::shared_ptr<block>, hash> blocks_;
  std::size_t held_bytes_ = 0;
  std::uint64_t requests_ = 0;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/index/read/impl/block_cache.inl>
#endif
