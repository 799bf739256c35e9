// A pool of open files. Sets of shards keep files open between reads, and share one limit.
//
//   mr::detail::idle_files files(128);                          // keeps at most 128 files open
//   auto opened = files.reuse(this, shard);                      // null: the caller opens the file of the shard
//   const auto closed = files.keep(this, std::move(opened));    // after the read; the caller destroys `closed`
//
// If too many files are open, keep() returns a file that the caller closes. Usually this is the least recently used
// file of all sets. If hardly any file is reused, as in a mix of many sources, keep() returns its own argument, so that
// the other files stay open. The pool keeps at most one file for each shard.
// Errors: none. Threads: any thread. Lifetime: a set calls remove_all() before it destroys the data that its files use.
#pragma once

#include <millrace/item/owner.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <mutex>
#include <new>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A file that may be kept open.
struct idle_file {
  explicit idle_file(std::size_t number) noexcept : shard(number) {}
  idle_file(const idle_file&) = delete;
  idle_file& operator=(const idle_file&) = delete;
  virtual ~idle_file() = default;
  const std::size_t shard;   ///< number of the shard in its set

 private:
  friend class idle_files;
  const void* set_ = nullptr;
  idle_file *older_ = nullptr, *newer_ = nullptr;   // neighbors in the order of their last use
};

/// Limits the number of files that several sets keep open.
class idle_files {
 public:
  explicit idle_files(std::size_t most) noexcept : most_(most) {}

  /// Returns the open file of a shard, or null if no file is open.
  owner<idle_file> reuse(const void* set, std::size_t shard) noexcept {
    const std::lock_guard lock(mutex_);
    const std::size_t at = find(set, shard);
    if (!is_at(at, set, shard)) return nullptr;
    ++reused_;
    return remove(at);
  }
  /// Keeps a file open for later reads. Returns null, or a file that the caller must close.
  MILLRACE_RARE owner<idle_file> keep(const void* set, owner<idle_file> file) noexcept {
    const std::lock_guard lock(mutex_);
    const std::size_t at = find(set, file->shard);
    if (most_ == 0 || is_at(at, set, file->shard)) return file;
    if (++calls_ == std::max<std::size_t>(2 * most_, 64)) {
      if (reused_ < calls_ / 16) replaces_ = !replaces_;
      calls_ = reused_ = 0;
    }
    if (!replaces_ && by_shard_.size() >= most_) return file;
    idle_file* const opened = file.get();
    try {
      by_shard_.insert(at, std::move(file));
    } catch (const std::bad_alloc&) {
      return file;   // NOLINT(*-use-after-move): insert() did not move it
    }
    opened->set_ = set;
    opened->older_ = newest_;
    (newest_ == nullptr ? oldest_ : newest_->newer_) = opened;
    newest_ = opened;
    return by_shard_.size() > most_ ? remove(find(oldest_->set_, oldest_->shard)) : nullptr;
  }
  /// Closes all files of a set.
  void remove_all(const void* set) noexcept {
    const std::lock_guard lock(mutex_);
    for (const std::size_t at = find(set, 0); at < by_shard_.size() && by_shard_[at].set_ == set;) remove(at);
  }
  /// Returns the number of open files.
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return by_shard_.size();
  }

 private:
  // Returns the index of the first file that is not before the shard.
  std::size_t find(const void* set, std::size_t shard) const noexcept {
    std::size_t first = 0, end = by_shard_.size();
    while (first < end) {
      const std::size_t middle = (first + end) / 2;
      const idle_file& file = by_shard_[middle];
      const bool before = file.set_ == set ? file.shard < shard : std::less<const void*>()(file.set_, set);
      (before ? first : end) = middle + before;
    }
    return first;
  }
  bool is_at(std::size_t at, const void* set, std::size_t shard) const noexcept {
    return at < by_shard_.size() && by_shard_[at].set_ == set && by_shard_[at].shard == shard;
  }
  owner<idle_file> remove(std::size_t at) noexcept {
    owner<idle_file> file = by_shard_.extract(at);
    (file->older_ == nullptr ? oldest_ : file->older_->newer_) = file->newer_;
    (file->newer_ == nullptr ? newest_ : file->newer_->older_) = file->older_;
    file->older_ = file->newer_ = nullptr;
    return file;
  }

  const std::size_t most_;
  mutable std::mutex mutex_;
  std::size_t calls_ = 0, reused_ = 0;                // calls of keep(), and reused files, since the last decision
  bool replaces_ = true;                              // whether a new file replaces the least recently used file
  idle_file *oldest_ = nullptr, *newest_ = nullptr;   // least and most recently used
  owner_list<idle_file> by_shard_;                    // in the order of sets and shards
};

}}}   // namespace millrace::detail
