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

#include <millrace/base/version.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
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
  const void* owner_ = nullptr;
  idle_file *older_ = nullptr, *newer_ = nullptr;   // neighbors in the order of their last use
};

/// Limits the number of files that several sets keep open.
class idle_files {
 public:
  explicit idle_files(std::size_t most) noexcept : most_(most) {}

  /// Returns the open file of a shard, or null if no file is open.
  std::unique_ptr<idle_file> reuse(const void* owner, std::size_t shard) noexcept {
    const std::lock_guard lock(mutex_);
    const auto at = by_shard_.find({owner, shard});
    if (at == by_shard_.end()) return nullptr;
    ++reused_;
    return remove(at);
  }
  /// Keeps a file open for later reads. Returns null, or a file that the caller must close.
  std::unique_ptr<idle_file> keep(const void* owner, std::unique_ptr<idle_file> file) noexcept {
    const std::lock_guard lock(mutex_);
    const key name{owner, file->shard};
    if (most_ == 0 || by_shard_.contains(name)) return file;
    if (++calls_ == std::max<std::size_t>(2 * most_, 64)) {
      if (reused_ < calls_ / 16) replaces_ = !replaces_;
      calls_ = reused_ = 0;
    }
    if (!replaces_ && by_shard_.size() >= most_) return file;
    std::unique_ptr<idle_file>* place = nullptr;
    try {
      place = &by_shard_[name];
    } catch (const std::bad_alloc&) {
      return file;
    }
    file->owner_ = owner;
    file->older_ = newest_;
    (newest_ == nullptr ? oldest_ : newest_->newer_) = file.get();
    newest_ = file.get();
    *place = std::move(file);
    return by_shard_.size() > most_ ? remove(by_shard_.find({oldest_->owner_, oldest_->shard})) : nullptr;
  }
  /// Closes all files of a set.
  void remove_all(const void* owner) noexcept {
    const std::lock_guard lock(mutex_);
    for (auto at = by_shard_.lower_bound({owner, 0}); at != by_shard_.end() && at->first.first == owner;) remove(at++);
  }
  /// Returns the number of open files.
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return by_shard_.size();
  }

 private:
  using key = std::pair<const void*, std::size_t>;
  using entries = std::map<key, std::unique_ptr<idle_file>>;

  std::unique_ptr<idle_file> remove(entries::iterator at) noexcept {
    std::unique_ptr<idle_file> file = std::move(at->second);
    (file->older_ == nullptr ? oldest_ : file->older_->newer_) = file->newer_;
    (file->newer_ == nullptr ? newest_ : file->newer_->older_) = file->older_;
    file->older_ = file->newer_ = nullptr;
    by_shard_.erase(at);
    return file;
  }

  const std::size_t most_;
  mutable std::mutex mutex_;
  std::size_t calls_ = 0, reused_ = 0;                // calls of keep(), and reused files, since the last decision
  bool replaces_ = true;                              // whether a new file replaces the least recently used file
  idle_file *oldest_ = nullptr, *newest_ = nullptr;   // least and most recently used
  entries by_shard_;
};

}}}   // namespace millrace::detail
