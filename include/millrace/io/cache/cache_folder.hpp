// cache_folder: the blocks (pieces of remote files) that a cache stores in its folder. One process fetches a block from
// the remote storage, and the other processes wait for the block.
//
//   mr::detail::cache_folder folder(options, layout, counts);
//   const mr::detail::cache_block block = folder.open(object, 7);             // empty: the block is not cached
//   mr::detail::cache_turn turn = folder.acquire_turn(object, 7);
//   if (turn.is_mine()) folder.store(turn, object, 7, data);   // otherwise: open it again, or bypass the cache
//
// A part is an incomplete block. Its file "NAME.part" has an exclusive lock, and is renamed when the block is complete.
// The system releases the lock when the process ends. Therefore a part without a lock belongs to a dead process. The
// next process that needs the block overwrites the part.
// Errors: none. A failure is counted, the first failure is reported, and the read bypasses the cache. Threads: any
// number. Threads of one process wait for each other in the same way as processes do.
#pragma once

#include <millrace/io/cache/cache_block.hpp>
#include <millrace/io/cache/cache_ledger.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The right to fetch a block, or the reason why this thread does not have the right. The destructor removes the part
/// if store() has not completed the block.
class cache_turn {
 public:
  enum class kind { mine, appeared, bypass };

  explicit cache_turn(kind k) noexcept : kind_(k) {}
  cache_turn(cache_ledger& ledger, unique_fd part, std::string path) noexcept
      : kind_(kind::mine), ledger_(&ledger), part_(std::move(part)), path_(std::move(path)) {}
  cache_turn(cache_turn&& other) noexcept
      : kind_(other.kind_),
        ledger_(std::exchange(other.ledger_, nullptr)),
        part_(std::move(other.part_)),
        path_(std::move(other.path_)) {}
  cache_turn& operator=(cache_turn&&) = delete;
  ~cache_turn() {
    if (ledger_) ledger_->remove(path_ + ".part", part_.get());
  }

  /// Returns whether this thread has to fetch the block.
  bool is_mine() const noexcept { return kind_ == kind::mine; }
  /// Returns whether another thread or process fetched the block after the caller tried to open it. If acquire_turn()
  /// was called with `waits` = false, the result is true even while the other thread or process fetches the block.
  bool has_appeared() const noexcept { return kind_ == kind::appeared; }

 private:
  friend class cache_folder;

  kind kind_;
  cache_ledger* ledger_ = nullptr;   // null if the turn has no part
  unique_fd part_{};
  std::string path_{};
};

/// The blocks of a cache.
class cache_folder {
 public:
  cache_folder(const cache_options& o, const cache_layout& layout, cache_counts& counts)
      : layout_(layout),
        wait_ns_(static_cast<std::uint64_t>(o.wait_limit.count())),
        counts_(counts),
        ledger_(o, counts) {}

  const cache_layout& layout() const noexcept { return layout_; }
  /// Returns the cache's own subfolder.
  const std::string& root() const noexcept { return ledger_.root(); }
  /// Returns the size of a block.
  std::uint64_t block_bytes(const cached_object& object, std::uint64_t number) const noexcept;
  /// Returns whether the cache has a block.
  bool has(const cached_object& object, std::uint64_t number) const;
  /// Opens a block for reading, and records its use. Returns an empty cache_block if the block is not cached or is
  /// damaged. Removes a damaged block.
  cache_block open(const cached_object& object, std::uint64_t number);
  /// Removes a damaged block.
  void drop_damaged(const cached_object& object, std::uint64_t number, const cache_block& block);
  /// Acquires the right to fetch a block. Reserves its space, evicts other blocks if necessary, and returns a turn for
  /// which is_mine() is true. If another thread or process is fetching the block, waits until the block is complete;
  /// has_appeared() is then true. If `waits` is false, the function does not wait, and has_appeared() is true although
  /// the block is incomplete. If the cache fails or the wait limit is reached, is_mine() and has_appeared() are both
  /// false.
  cache_turn acquire_turn(const cached_object& object, std::uint64_t number, bool waits = true);
  /// Writes a block. Requires that the turn's is_mine() is true. Returns false if the write fails.
  bool store(cache_turn& turn, const cached_object& object, std::uint64_t number, std::span<const std::byte> data);

 private:
  std::string path_of(const cached_object& object, std::uint64_t number) const;
  cache_block_head head_of(const cached_object& object, std::uint64_t number) const;
  unique_fd open_part(const std::string& path);

  const cache_layout layout_;
  const std::uint64_t wait_ns_;
  cache_counts& counts_;
  cache_ledger ledger_;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/cache/impl/cache_folder.inl>
#endif
