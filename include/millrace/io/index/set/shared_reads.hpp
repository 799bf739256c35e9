// The memory, the open files and the counts of events that several sets of shards share.
//
//   const auto shared = std::make_shared<mr::detail::shared_reads>(512);   // up to 512 files stay open between reads
//   for (const auto& set : sets) set->share(shared);
//   shared->report(counts);                                               // events of all sets since the last call
//
// Errors: none. Threads: any thread.
#pragma once

#include <millrace/io/file/file_list.hpp>
#include <millrace/io/index/entries/entry_files.hpp>
#include <millrace/io/index/set/indexed_shard.hpp>
#include <millrace/io/tar/read/returning_keys.hpp>
#include <millrace/item/bytes.hpp>
#include <millrace/item/owner.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// A pool of open files. Sets of shards keep files open between reads, and share one limit.
//
// If too many files are open, keep() returns a file that the caller closes. Usually this is the least recently used
// file of all sets. If hardly any file is reused, as in a mix of many sources, keep() returns its own argument, so that
// the other files stay open. The pool keeps at most one file for each shard.
// Errors: none. Threads: any thread. Lifetime: a set calls remove_all() before it destroys the data that its files use.

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

  /// Removes the file of a shard from the pool and returns it. Returns null if the pool does not contain a file of this
  /// shard.
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
  // Returns the index of the shard's file, or the index at which keep() would insert this file.
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
  std::size_t calls_ = 0, reused_ = 0;                // calls of keep() and reuses since replaces_ was last chosen
  bool replaces_ = true;                              // whether a new file replaces the least recently used file
  idle_file *oldest_ = nullptr, *newest_ = nullptr;   // least and most recently used
  owner_list<idle_file> by_shard_;                    // in the order of sets and shards
};

// Counts the samples of a data set that have the key of an earlier sample in their shard. The samples of a shard are
// counted when the index of the shard is loaded.
//
// Errors: none. Threads: any thread.

/// The samples that were counted, but not reported yet.
class returning_samples {
 public:
  /// Adds `samples` to the count. `number` is the number of the shard in `names`.
  void add(std::uint64_t samples, const name_list& names, std::size_t number) noexcept {
    const std::lock_guard lock(mutex_);
    names_ = names;
    shard_ = number;
    samples_ += samples;
  }
  /// Moves the unreported samples of `others` to this object.
  void add(returning_samples& others) noexcept {
    if (const std::uint64_t samples = others.samples_.exchange(0); samples > 0)
      add(samples, *others.names_, others.shard_);
  }

  /// Reports the samples: adds them to the counts of events, and sends a notice with the name of one shard.
  void report(event_counts& counts) noexcept {
    if (samples_.load(std::memory_order_relaxed) == 0) return;
    const std::lock_guard lock(mutex_);
    if (const std::uint64_t samples = samples_.exchange(0); samples > 0)
      report_returning_keys(counts, samples, names_->view(shard_));
  }

 private:
  std::atomic<std::uint64_t> samples_{0};
  std::mutex mutex_;   // guards the members below
  std::optional<name_list> names_;
  std::size_t shard_ = 0;
};

/// Returns the first sample that has this key, but does not begin at `own_offset_bytes`. Returns nothing if there is no
/// such sample. Such samples exist if the members of a sample are not adjacent in a shard.
inline MILLRACE_RARE_CODE std::optional<other_piece> find_other_piece_of_sample(const shard_index& index,
                                                                                std::string_view key,
                                                                                std::uint64_t own_offset_bytes) {
  constexpr std::size_t max_text_bytes = 200;
  for (std::uint32_t i = 0; i < index.samples(); ++i) {
    const indexed_sample s = index.sample(i);
    if (s.key != key || s.offset_bytes == own_offset_bytes) continue;
    other_piece piece{.offset_bytes = s.offset_bytes};
    for (std::uint32_t m = s.first_member; m < s.end_member && piece.fields.size() < max_text_bytes; ++m)
      piece.fields += (piece.fields.empty() ? "'" : ", '") + printable(index.member(m).field, 60) + "'";
    return piece;
  }
  return std::nullopt;
}

/// Objects that sets of shards share.
struct shared_reads {
  explicit shared_reads(std::size_t max_files) : files(max_files) {}

  /// Adds the events since the last call to `counts`. The events are fields with entry points, fields with wrong entry
  /// points, and samples with the key of an earlier sample in their shard.
  void report(event_counts& counts) noexcept {
    entries.report(counts);
    returning.report(counts);
  }

  block_pool pool;
  idle_files files;
  entry_counts entries;
  returning_samples returning;
};

}}}   // namespace millrace::detail
