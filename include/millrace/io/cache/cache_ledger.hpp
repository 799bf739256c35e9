// cache_ledger: manages the disk space of a cache. It counts the bytes in use, and evicts blocks (parts of remote
// files, each in its own file) when new blocks need space.
//
//   mr::detail::cache_ledger ledger(options, counts);
//   const bool fits = ledger.reserve(part.get(), bytes);       // sets the size of the file; may evict blocks
//   ledger.publish("ab/x.part", "ab/x");                       // renames
//   ledger.remove("ab/x", damaged.file());
//
// All processes of one user share the subfolder "millrace-cache-USER-1" of the cache's folder. The file "ledger" in
// this subfolder contains the bytes in use. A process locks this file before each change. The system releases the lock
// when the process ends.
// The bytes of a block are added to the sum before its file is resized. Therefore, if the process is killed, the sum
// may be too large but never too small. A scan of all files corrects the sum at the start and before each eviction.
// Blocks are evicted in the order of their last use, according to the times of their files, with a precision of one
// second. Blocks of an older version of a remote file are evicted before all others. Open blocks are not evicted, and
// neither are parts (incomplete blocks) that a process is writing. Parts of dead processes are removed. Files with
// other names stay.
// Errors: none. A failure is counted, the first failure is reported, and reads bypass the cache. It is also a failure
// if another process does not release the lock in time. After a failure, all attempts pause for a second, so that a
// full disk does not slow down reading.
// Threads: any number of threads.
#pragma once

#include <millrace/io/cache/cache_counts.hpp>
#include <millrace/io/file/unique_fd.hpp>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The parsed name of a block's file.
struct cache_file_name {
  std::uint64_t object = 0;     ///< digest of the object's name
  std::uint64_t version = 0;    ///< digest of the object's size and version
  std::uint64_t number = 0;     ///< number of the block
  bool is_part = false;         ///< true if the block is not complete yet

  friend bool operator==(const cache_file_name&, const cache_file_name&) = default;
};

/// Returns "ab/<object>-<version>-<number>", where ab are the first two digits of the object's digest.
std::string text_of(const cache_file_name& name);
/// Returns the parsed name of a file in a subfolder, or nothing if it is not the file of a block.
std::optional<cache_file_name> parse_cache_file(std::string_view file) noexcept;

/// A file of a cache.
struct cache_entry {
  std::string path{};
  cache_file_name name{};
  std::uint64_t bytes = 0;    ///< size of the file on the disk
  std::int64_t used_ns = 0;   ///< time of the last use, in ns since 1970
};

/// Returns all files of a cache, in no particular order. `root` is the cache's own subfolder.
std::vector<cache_entry> list_cache(const std::string& root);
/// Returns the name of the cache's own subfolder for this user.
std::string cache_root(const std::string& folder);
/// Returns whether `path` still names the open file `file`.
bool is_same_file(const std::string& path, int file) noexcept;

/// Enforces the limits of a cache.
class cache_ledger {
 public:
  cache_ledger(const cache_options& o, cache_counts& counts);

  /// Returns the cache's own subfolder.
  const std::string& root() const noexcept { return root_; }
  /// Returns whether the cache cannot be used at all, or an operation on it failed within the last second.
  bool is_paused() const noexcept;
  /// Evicts blocks if necessary, and sets the size of a file. If there is not enough space, empties the file and
  /// returns false.
  bool reserve(int file, std::uint64_t bytes);
  /// Renames a part to the name of its block. Returns false if the rename fails. The part then still exists.
  bool publish(const std::string& part, const std::string& path);
  /// Removes the open file `file`, unless the path now names another file.
  void remove(const std::string& path, int file);
  /// Reports a failure, and starts a pause. `reason` is an errno.
  void report_failure(const std::string& problem, int reason);

 private:
  static constexpr std::uint64_t pause_ns = 1'000'000'000, lock_patience_ns = 2'000'000'000;

  /// The lock on the ledger.
  class scoped_lock {
   public:
    scoped_lock(cache_ledger& ledger, std::uint64_t patience_ns);
    scoped_lock(const scoped_lock&) = delete;
    scoped_lock& operator=(const scoped_lock&) = delete;
    ~scoped_lock();
    explicit operator bool() const noexcept { return locked_; }

   private:
    std::unique_lock<std::mutex> mine_;   // needed because threads share the open file and thus its lock
    int file_;
    bool locked_ = false;
  };

  bool create_root();
  void pause() noexcept;
  std::optional<std::uint64_t> read_used() const noexcept;
  void write_used(std::uint64_t used) noexcept;
  std::uint64_t used_bytes();
  /// Returns the number of bytes that must be evicted so that `needed` more bytes fit.
  std::uint64_t excess(std::uint64_t used, std::uint64_t needed) const noexcept;
  /// Scans all files, and evicts blocks: at least `at_least` bytes of them. Returns the bytes in use.
  std::uint64_t evict(std::uint64_t needed, std::uint64_t at_least);

  const std::string root_;
  const std::uint64_t limit_bytes_;
  const double keep_free_share_;
  cache_counts& counts_;
  std::mutex mutex_;
  unique_fd file_;
  bool usable_ = false;
  std::atomic<std::uint64_t> paused_until_ns_{0};
};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/cache/impl/cache_ledger.inl>
#endif
