// The room that a cache takes on its disk: what is used, what may be added, and what has to go for it.
//
//   mr::detail::cache_ledger ledger(options, counts);
//   const bool fits = ledger.reserve(part.get(), bytes);       // the file now has its size, others may have gone
//   ledger.publish("ab/x.part", "ab/x");                       // renames
//   ledger.remove("ab/x", damaged.file());
//
// All processes of one user share the subfolder "millrace-cache-USER-1" of the folder. They agree by the file "ledger"
// in it, which holds the bytes in use. It is changed under a lock on it, which dies with its process. A block's bytes
// are added before its file gets its size, so a kill may leave the sum too large but never too small. A look at all
// files makes it right again, at the start and whenever blocks have to go.
// Blocks go in the order of their last use, by the time of their files, to a second. Older versions of a file go first.
// A block that any process has open stays, and so does a part that is being written. Parts of dead processes go.
// Files of other names in the folder are left alone.
// Errors: none; what fails is told once, counted, and done without. A lock that another process holds for too long is
// a failure too. After a failure nothing is tried for a second, so that a full disk does not slow down reading.
// Threads: any number.
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

/// The name of a block's file, in numbers.
struct cache_file_name {
  std::uint64_t object = 0;     ///< digest of the object's name
  std::uint64_t version = 0;    ///< digest of its size and version
  std::uint64_t number = 0;     ///< of the block
  bool is_part = false;         ///< not complete yet

  friend bool operator==(const cache_file_name&, const cache_file_name&) = default;
};

/// Returns "ab/<object>-<version>-<number>", where ab are the first digits of the object.
std::string text_of(const cache_file_name& name);
/// Returns the name that a file in a subfolder says; nothing for any other file.
std::optional<cache_file_name> parse_cache_file(std::string_view file) noexcept;

/// A file of a cache.
struct cache_entry {
  std::string path{};
  cache_file_name name{};
  std::uint64_t bytes = 0;    ///< what it takes on the disk
  std::int64_t used_ns = 0;   ///< time of its last use
};

/// Returns all files of a cache, without an order. `root` is the cache's own subfolder.
std::vector<cache_entry> list_cache(const std::string& root);
/// Returns the name of the cache's own subfolder for this user.
std::string cache_root(const std::string& folder);
/// Returns whether a path still names an open file.
bool is_same_file(const std::string& path, int file) noexcept;

/// Keeps a cache within its limits.
class cache_ledger {
 public:
  cache_ledger(const cache_options& o, cache_counts& counts);

  /// Returns the cache's own subfolder.
  const std::string& root() const noexcept { return root_; }
  /// Returns whether something has failed for good, or within the last second.
  bool is_paused() const noexcept;
  /// Gives a file its size, and makes room for it. Returns false if there is no room; the file is empty then.
  bool reserve(int file, std::uint64_t bytes);
  /// Renames a part. Returns false if that is not possible; the part still is there then.
  bool publish(const std::string& part, const std::string& path);
  /// Removes a file, unless the path names another by now.
  void remove(const std::string& path, int file);
  /// Tells of a failure, and pauses.
  void failed(const std::string& what, int reason);

 private:
  static constexpr std::uint64_t pause_ns = 1'000'000'000, lock_patience_ns = 2'000'000'000;

  /// The lock on the ledger.
  class held {
   public:
    held(cache_ledger& of, std::uint64_t patience_ns);
    held(const held&) = delete;
    held& operator=(const held&) = delete;
    ~held();
    explicit operator bool() const noexcept { return locked_; }

   private:
    std::unique_lock<std::mutex> mine_;   // the system's lock belongs to the open file, which threads share
    int file_;
    bool locked_ = false;
  };

  bool make_root();
  void pause() noexcept;
  std::optional<std::uint64_t> read_used() const noexcept;
  void write_used(std::uint64_t used) noexcept;
  std::uint64_t known_used();
  /// Returns how many bytes have to go before `wanted` more fit.
  std::uint64_t excess(std::uint64_t used, std::uint64_t wanted) const noexcept;
  /// Looks at all files, and removes what has to go. Returns the bytes in use.
  std::uint64_t make_room(std::uint64_t wanted, std::uint64_t at_least);

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
