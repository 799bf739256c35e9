// A storage whose files are kept on a local disk: each byte is fetched once for all processes and runs of a machine.
//
//   auto kept = std::make_shared<mr::detail::cached_storage>(below, mr::cache_options{.folder = "/scratch/mr"});
//   auto flow = mr::shards("vault:train-000.tar", {.storage = mr::storage(kept)});
//   kept->figures().share();                       // of all bytes that were read
//
// A file of the storage below is cut into blocks of 8 MiB. Each block is a file of its own (cache_block.hpp), which
// appears by a rename. One sparse file for each object would need a table of blocks that survives a kill at any
// moment, and holes for what is evicted. Files give both for nothing, and 500 GB are 60,000 of them. A whole shard
// is all of its blocks; of a shard of which little is read, only few blocks are fetched.
// A block is named by the object's name and its identity, size and version, which the storage below tells at each
// open(). So a replaced object is another object. Without a version nothing is cached.
// A block is read under its checksums. One that is damaged is a miss: it is removed and fetched again. Since that
// also finds what a crash of the machine loses, nothing is flushed to the disk.
// One process fetches a block, and others wait for it up to a limit (cache_folder.hpp).
// Blocks that nobody has open make room for others, least recently used first, in limits that count what is being
// written (cache_ledger.hpp). The state is in the files, their times and locks: a kill leaves nothing to repair.
// Where the cache cannot be written, reads go on without it.
// Sources tell which files they will open (storage_interface::expect). Those are fetched ahead (cache_plan.hpp).
// Errors: those of the storage below. io_error if a file is replaced between open() and its first read from below.
// Threads: any number; a file by one at a time. Lifetime: files may outlive the storage.
#pragma once

#include <millrace/io/cache/cache_folder.hpp>
#include <millrace/io/cache/cache_plan.hpp>
#include <millrace/io/file/storage.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The common parts of all files of a cached storage.
class cache_core {
 public:
  cache_core(std::shared_ptr<storage_interface> from, const cache_options& o, const cache_layout& layout)
      : below(std::move(from)), counts(o.notice), folder(o, layout, counts),
        plan(std::min(o.ahead_bytes, o.bytes.value_or(~std::uint64_t{0}) / 2)) {}

  /// Returns memory for a block, which give_back() takes.
  std::unique_ptr<std::byte[]> take_memory();
  void give_back(std::unique_ptr<std::byte[]> memory);

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
  /// Tells the storage below which blocks will be fetched from it.
  void will_read(std::span<const byte_range> ranges) override;

  /// Brings a block into the cache unless it is there. Returns false if it cannot be kept.
  bool bring(std::uint64_t block);
  /// Says that this file belongs to the threads that fetch ahead: no reader has done with it when it is closed.
  void belongs_to_plan() noexcept { is_readers_ = false; }
  /// Returns how many blocks the file has.
  std::uint64_t blocks() const noexcept;

 private:
  class fetched;

  stored_file& below();
  std::size_t pass(std::uint64_t offset_bytes, std::span<std::byte> buffer);
  std::size_t fetch(cache_turn turn, std::uint64_t number, std::uint64_t offset_bytes, std::span<std::byte> buffer);
  std::optional<std::size_t> read_cached(std::uint64_t offset_in_block, std::span<std::byte> buffer);
  bool open_block(std::uint64_t number);

  const std::shared_ptr<cache_core> core_;
  const cached_object object_;
  std::unique_ptr<stored_file> below_{};   // null until something has to be fetched
  cache_block block_{};
  std::uint64_t block_number_ = 0;
  bool is_readers_ = true;
  std::uint64_t own_block_ = ~std::uint64_t{0};      // the last block that this file has fetched; it is no hit
  std::uint64_t passed_block_ = ~std::uint64_t{0};   // the block that is read without the cache
};

/// A storage over another one.
class cached_storage final : public storage_interface {
 public:
  /// Makes the folder. Throws setup_error if an option makes no sense.
  cached_storage(std::shared_ptr<storage_interface> below, const cache_options& o, const cache_layout& layout = {});
  ~cached_storage() override;

  std::unique_ptr<stored_file> open(const std::string& name) override;
  std::optional<file_identity> find(const std::string& name) override { return core_->below->find(name); }
  std::vector<std::string> list(const std::string& prefix) override { return core_->below->list(prefix); }

  void assume(const std::string& name, const file_identity& identity) override {
    core_->below->assume(name, identity);
  }
  std::size_t request_bytes() const override { return core_->below->request_bytes(); }
  /// Indexes are about a thousandth of the data; the limit does not count them.
  std::string index_folder() const override { return core_->folder.root() + "/indexes"; }

  /// Begins to fetch the files, `ahead_files` at a time. Once threads are refused, nothing is fetched ahead.
  void expect(std::span<const std::string> names) override;

  /// Returns what the cache did so far.
  cache_figures figures() const noexcept { return core_->counts.figures(); }
  /// Returns the folder in which the blocks are.
  const std::string& root() const noexcept { return core_->folder.root(); }

 private:
  void fetch_ahead();

  std::shared_ptr<cache_core> core_;
  const unsigned ahead_files_;
  std::mutex mutex_;
  std::vector<std::thread> fetching_{};   // guarded by mutex_
};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/cache/impl/cached_storage.inl>
#endif
