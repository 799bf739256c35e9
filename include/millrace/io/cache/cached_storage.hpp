// A storage with a cache on a local disk. Each byte is fetched once for all processes and runs of a user on a machine.
//
//   auto cache = std::make_shared<mr::detail::cached_storage>(below, mr::cache_options{.folder = "/scratch/mr"});
//   auto flow = mr::shards("vault:train-000.tar", {.storage = mr::storage(cache)});
//   cache->statistics().share();                      // share of the delivered bytes that were read from the cache
//
// A file of the underlying storage is divided into blocks of 8 MiB. Each block is a separate file (cache_block.hpp),
// which gets its final name when it is complete. Apart from prefetching, only the blocks that a run reads are fetched.
// The name of a block contains the name, the size and the version of its object (the file of the underlying storage).
// Therefore the cache treats a replaced object as a new object. Objects without a version are not cached. Each read
// checks the checksums of its block. A damaged block is removed and fetched again. If several processes need a block,
// one process fetches it. The others wait for the block. After a time limit (cache_folder.hpp), they read without the
// cache. Blocks that are not open are evicted, least recently used first (cache_ledger.hpp). A killed process leaves
// nothing to repair. If the cache cannot be written, reads continue without the cache. Sources announce the files that
// they will open (storage_interface::expect). The cache prefetches these files.
// Errors: the errors of the underlying storage. io_error if a file is replaced between open() and the first read from
// the underlying storage. Threads: any number, but only one thread at a time uses a file. Lifetime: files may outlive
// the storage.
#pragma once

#include <millrace/io/cache/cache_folder.hpp>
#include <millrace/io/file/storage.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Determines the files to prefetch into a cache, from the lists of files that readers will open.
//
// Each call of expect() adds a list. next() alternates between the lists and keeps the order of each list. A
// cache_plan also limits the number of prefetched bytes in files that no reader has finished yet.
// Errors: none. Threads: any number of threads.

/// Lists of expected files, and their prefetched bytes.
class cache_plan {
 public:
  explicit cache_plan(std::uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  /// Adds a list. If there are then more than `max_lists` lists, discards the list whose turn is next.
  void expect(std::span<const std::string> names) {
    {
      const std::lock_guard lock(mutex_);
      lists_.emplace_back(names.begin(), names.end());
      for (const std::string& name : names) done_.erase(name);
      if (lists_.size() > max_lists) {
        // Some readers have probably stopped without closing their files. Therefore the count of prefetched bytes
        // begins again at 0.
        lists_.pop_front();
        ahead_.clear();
        ahead_bytes_ = 0;
      }
    }
    changed_.notify_all();
  }
  /// Waits for the next file and returns its name. Returns nothing after stop().
  std::optional<std::string> next() {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (stopped_) return std::nullopt;
      if (ahead_bytes_ < limit_bytes_)
        if (auto name = pop_next()) {
          ahead_[*name] += 0;   // creates an entry, so that no other thread prefetches the file
          return name;
        }
      changed_.wait(lock);
    }
  }
  /// Waits until one more block may be prefetched. Returns false if a reader has finished the file or stop() was
  /// called.
  bool wait_for_room(const std::string& name) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopped_ || ahead_bytes_ < limit_bytes_ || !ahead_.contains(name); });
    return !stopped_ && ahead_.contains(name);
  }
  /// Counts a prefetched block of a file.
  void add(const std::string& name, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto entry = ahead_.find(name);
    if (entry == ahead_.end()) return;
    entry->second += bytes;
    ahead_bytes_ += bytes;
  }
  /// Reports that a reader has finished a file. After this call, the bytes of the file no longer count toward the
  /// limit.
  void closed(const std::string& name) {
    {
      const std::lock_guard lock(mutex_);
      const auto entry = ahead_.find(name);
      if (entry != ahead_.end()) {
        ahead_bytes_ -= entry->second;
        ahead_.erase(entry);
      }
      if (!lists_.empty()) done_.insert(name);
      else done_.clear();
    }
    changed_.notify_all();
  }
  /// Ends all current and later waits.
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
  }

 private:
  static constexpr std::size_t max_lists = 128;

  std::optional<std::string> pop_next() {
    while (!lists_.empty()) {
      std::deque<std::string> list = std::move(lists_.front());
      lists_.pop_front();
      while (!list.empty()) {
        std::string name = std::move(list.front());
        list.pop_front();
        if (done_.contains(name) || ahead_.contains(name)) continue;
        if (!list.empty()) lists_.push_back(std::move(list));
        return name;
      }
    }
    return std::nullopt;
  }

  const std::uint64_t limit_bytes_;
  std::mutex mutex_;   // guards all members below
  std::condition_variable changed_;
  std::deque<std::deque<std::string>> lists_{};
  std::unordered_map<std::string, std::uint64_t> ahead_{};
  std::unordered_set<std::string> done_{};   // files that a reader has already closed; next() skips them
  std::uint64_t ahead_bytes_ = 0;
  bool stopped_ = false;
};

/// State shared by all files of a cached storage.
class cache_core {
 public:
  cache_core(std::shared_ptr<storage_interface> from, const cache_options& o, const cache_layout& layout)
      : below(std::move(from)),
        counts(o.notice),
        folder(o, layout, counts),
        plan(std::min(o.prefetched_bytes, o.bytes.value_or(~std::uint64_t{0}) / 2)) {}

  /// Returns memory for one block. Return it with release_block().
  std::unique_ptr<std::byte[]> acquire_block();
  void release_block(std::unique_ptr<std::byte[]> memory);

  const std::shared_ptr<storage_interface> below;
  cache_counts counts;
  cache_folder folder;
  cache_plan plan;

 private:
  static constexpr std::size_t max_spare_memory = 4;

  std::mutex mutex_;
  std::vector<std::unique_ptr<std::byte[]>> spare_{};
};

/// A file that is read through the cache.
class cached_file final : public stored_file {
 public:
  cached_file(std::shared_ptr<cache_core> core, cached_object object);

  ~cached_file() override;

  std::string_view name() const noexcept override { return object_.name; }
  file_identity identity() const override { return object_.identity; }
  std::size_t read_at(std::uint64_t offset_bytes, std::span<std::byte> buffer) override;
  /// Announces to the underlying storage the blocks that will be fetched from it.
  void will_read(std::span<const byte_range> ranges) override;

  /// Fetches a block into the cache unless it is cached. Returns false if the block cannot be stored.
  bool prefetch(std::uint64_t block);
  /// Marks this file as opened by a prefetching thread, not by a reader.
  void mark_as_prefetch() noexcept { is_readers_ = false; }
  /// Returns the number of blocks in the file.
  std::uint64_t blocks() const noexcept;

 private:
  class fetched_block;

  stored_file& below();
  std::size_t pass(std::uint64_t offset_bytes, std::span<std::byte> buffer);
  std::size_t fetch(cache_turn turn, std::uint64_t number, std::uint64_t offset_bytes, std::span<std::byte> buffer);
  std::optional<std::size_t> read_cached(std::uint64_t offset_in_block, std::span<std::byte> buffer);
  bool open_block(std::uint64_t number);

  const std::shared_ptr<cache_core> core_;
  const cached_object object_;
  std::unique_ptr<stored_file> below_{};   // null until a block has to be fetched
  cache_block block_{};
  std::uint64_t block_number_ = 0;
  bool is_readers_ = true;
  // The last block that this object fetched. If this block is read again, the read is not counted as a hit.
  std::uint64_t own_block_ = ~std::uint64_t{0};
  // The block that is read directly from the underlying storage, because it is not available in the cache.
  std::uint64_t passed_block_ = ~std::uint64_t{0};
};

/// A storage that caches the files of another storage.
class cached_storage final : public storage_interface {
 public:
  /// Creates the cache's folder. Throws setup_error if an option is invalid.
  cached_storage(std::shared_ptr<storage_interface> below, const cache_options& o, const cache_layout& layout = {});
  ~cached_storage() override;

  std::unique_ptr<stored_file> open(const std::string& name) override;
  std::optional<file_identity> find(const std::string& name) override { return core_->below->find(name); }
  std::vector<std::string> list(const std::string& prefix) override { return core_->below->list(prefix); }

  void assume(const std::string& name, const file_identity& identity) override { core_->below->assume(name, identity); }
  std::size_t request_bytes() const override { return core_->below->request_bytes(); }
  /// Returns the folder for indexes. The size of the indexes (about 0.1 % of the data) does not count toward the limit
  /// of the cache.
  std::string index_folder() const override { return core_->folder.root() + "/indexes"; }

  /// Begins to prefetch the files. Prefetches up to `prefetched_files` files concurrently. If the system cannot start
  /// all threads, fewer files are prefetched concurrently.
  void expect(std::span<const std::string> names) override;

  /// Returns the statistics of the cache so far.
  cache_statistics statistics() const noexcept { return core_->counts.statistics(); }
  /// Returns the folder that contains the blocks.
  const std::string& root() const noexcept { return core_->folder.root(); }

 private:
  void fetch_ahead();

  std::shared_ptr<cache_core> core_;
  const unsigned ahead_files_;
  std::mutex mutex_;
  std::vector<std::thread> fetching_{};   // guarded by mutex_
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/cache/impl/cached_storage.inl>
#endif
