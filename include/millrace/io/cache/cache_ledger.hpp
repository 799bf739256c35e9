// cache_ledger: manages the disk space of a cache. The ledger counts the bytes in use. A block is a range of a remote
// file, and is stored in a separate local file. If new blocks need space, the ledger evicts old blocks.
//
//   mr::detail::cache_ledger ledger(options, counts);
//   const bool fits = ledger.reserve(part.get(), bytes);       // sets the size of the file; may evict blocks
//   ledger.publish("ab/x.part", "ab/x");                       // renames
//   ledger.remove("ab/x", damaged.file());
//
// All processes of one user share the subfolder "millrace-cache-USER-1" of the cache's folder. The file "ledger" in
// this subfolder contains the number of bytes in use. A process locks this file before each change. A process adds the
// bytes of a block to the ledger before it resizes the block's file. If a process is killed, the ledger may state too
// many bytes, but never too few. A process scans all files and corrects the ledger when it opens the cache, and before
// each eviction. Blocks of outdated versions of remote files are evicted first. Then the least recently used blocks are
// evicted; the times of use have a precision of one second. Open blocks, and parts (incomplete blocks) that a process
// is writing, are not evicted. Parts of dead processes are removed. A file whose name is not that of a block or a part
// is never removed.
// Errors: none. A failure is counted, the first failure is reported, and reads bypass the cache. A lock that another
// process does not release in time is also a failure. After a failure, the process does not use the cache for one
// second.
// Threads: any number of threads.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/io/cache/cache_options.hpp>
#include <millrace/io/file/unique_fd.hpp>
#include <millrace/sync/notice_outlet.hpp>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {


/// The counters of a cache in this process, and its notices. Threads: any thread.
class cache_counts {
 public:
  using counter = std::atomic<std::uint64_t>;

  explicit cache_counts(notice_function notices) : notices_(std::move(notices)) {}

  counter delivered_bytes{0}, fetched_bytes{0}, prefetched_bytes{0}, uncached_bytes{0}, written_bytes{0};
  counter hits{0}, misses{0}, waits{0}, waits_given_up{0}, evictions{0}, evicted_bytes{0}, damaged_blocks{0};
  counter refusals{0}, files_without_version{0};

  static void add(counter& to, std::uint64_t n = 1) noexcept { to.fetch_add(n, std::memory_order_relaxed); }
  /// Returns the counts so far.
  cache_statistics statistics() const noexcept {
    const auto read = [](const counter& of) { return of.load(std::memory_order_relaxed); };
    return {.delivered_bytes = read(delivered_bytes),
            .fetched_bytes = read(fetched_bytes),
            .prefetched_bytes = read(prefetched_bytes),
            .uncached_bytes = read(uncached_bytes),
            .written_bytes = read(written_bytes),
            .hits = read(hits),
            .misses = read(misses),
            .waits = read(waits),
            .waits_given_up = read(waits_given_up),
            .evictions = read(evictions),
            .evicted_bytes = read(evicted_bytes),
            .damaged_blocks = read(damaged_blocks),
            .refusals = read(refusals),
            .files_without_version = read(files_without_version)};
  }

  /// Counts a block that cannot be stored. Reports the reason in the first call only.
  void report_trouble(const std::string& reason) {
    add(refusals);
    if (!trouble_reported_.exchange(true)) report(reason);
  }
  /// Counts a file for which the storage returned no version. Reports the file in the first call only.
  void report_unversioned(const std::string& name) {
    add(files_without_version);
    if (!unversioned_reported_.exchange(true))
      report("files without a version are not cached, because a replaced file would look like the cached one; the "
             "first is '" +
             printable(name) + "'");
  }

 private:
  void report(const std::string& text) {
    notices_.deliver({.kind = notice_kind::cache, .severity = notice_severity::warning, .text = text});
  }

  notice_outlet notices_;
  std::atomic<bool> trouble_reported_{false}, unversioned_reported_{false};
};

/// The parsed name of a block's file.
struct cache_file_name {
  std::uint64_t object = 0;    ///< digest of the remote file's name
  std::uint64_t version = 0;   ///< digest of the remote file's size and version
  std::uint64_t number = 0;    ///< number of the block
  bool is_part = false;        ///< true if the block is not complete yet

  friend bool operator==(const cache_file_name&, const cache_file_name&) = default;
};

/// Returns "ab/<object>-<version>-<number>", where ab are the first two digits of <object>.
std::string text_of(const cache_file_name& name);
/// Parses the name of a block's file, without the folder "ab". Returns nothing if `file` is not such a name.
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
bool is_same_cached_file(const std::string& path, int file) noexcept;

/// Enforces the limits of a cache.
class cache_ledger {
 public:
  cache_ledger(const cache_options& o, cache_counts& counts);

  /// Returns the cache's own subfolder.
  const std::string& root() const noexcept { return root_; }
  /// Returns true if the cache is unusable, or if an operation on the cache failed within the last second.
  bool is_paused() const noexcept;
  /// Evicts blocks if necessary, and sets the size of a file. If there is not enough space, empties the file and
  /// returns false.
  bool reserve(int file, std::uint64_t bytes);
  /// Renames a part to the name of its block. If the rename fails, returns false, and the part still exists.
  bool publish(const std::string& part, const std::string& path);
  /// Removes the open file `file`, unless the path now names another file.
  void remove(const std::string& path, int file);
  /// Reports a failure, and starts a pause. `reason` is an errno value.
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
  /// Scans all files. Evicts at least `at_least` bytes, and continues until `needed` more bytes fit. Returns the number
  /// of bytes that are then in use.
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

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/cache/impl/cache_ledger.inl>
#endif
