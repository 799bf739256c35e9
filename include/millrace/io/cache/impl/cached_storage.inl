// Definitions for cached_storage.hpp.
#pragma once

#include <millrace/io/cache/cached_storage.hpp>

#include <millrace/base/error.hpp>
#include <millrace/io/file/posix_files.hpp>
#include <millrace/sync/start_thread.hpp>

#include <cstring>
#include <exception>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::unique_ptr<std::byte[]> cache_core::acquire_block() {
  {
    const std::lock_guard lock(mutex_);
    if (!spare_.empty()) {
      auto memory = std::move(spare_.back());
      spare_.pop_back();
      return memory;
    }
  }
  return std::unique_ptr<std::byte[]>(new std::byte[folder.layout().block_bytes]);
}

MILLRACE_INLINE void cache_core::release_block(std::unique_ptr<std::byte[]> memory) {
  const std::lock_guard lock(mutex_);
  if (spare_.size() < max_spare_memory) spare_.push_back(std::move(memory));
}

/// The bytes of a block that the underlying storage has returned.
class cached_file::fetched_block {
 public:
  explicit fetched_block(cache_core& core) : core_(core), memory_(core.acquire_block()) {}
  fetched_block(const fetched_block&) = delete;
  fetched_block& operator=(const fetched_block&) = delete;
  ~fetched_block() { core_.release_block(std::move(memory_)); }

  /// Reads up to `size` bytes. Stops at the end of the file, or at an error, and stores the error.
  void read(stored_file& from, std::uint64_t offset_bytes, std::size_t size) {
    try {
      while (size_ < size) {
        const std::size_t got = from.read_at(offset_bytes + size_, {memory_.get() + size_, size - size_});
        if (got == 0) return;
        size_ += got;
      }
    } catch (...) {
      failure_ = std::current_exception();
    }
  }
  std::span<const std::byte> bytes() const noexcept { return {memory_.get(), size_}; }
  const std::exception_ptr& failure() const noexcept { return failure_; }

 private:
  cache_core& core_;
  std::unique_ptr<std::byte[]> memory_;
  std::size_t size_ = 0;
  std::exception_ptr failure_{};
};

MILLRACE_INLINE cached_file::cached_file(std::shared_ptr<cache_core> core, cached_object object)
    : core_(std::move(core)), object_(std::move(object)) {}

MILLRACE_INLINE cached_file::~cached_file() {
  if (is_readers_) core_->plan.closed(object_.name);
}

MILLRACE_INLINE std::uint64_t cached_file::blocks() const noexcept {
  const std::uint64_t bytes = core_->folder.layout().block_bytes;
  return (object_.identity.size_bytes + bytes - 1) / bytes;
}

MILLRACE_INLINE stored_file& cached_file::below() {
  if (below_) return *below_;
  auto opened = core_->below->open(object_.name);
  if (!opened || opened->identity() != object_.identity)
    throw io_error(opened ? "the file was replaced since it was opened" : "the file was removed since it was opened",
                   "Write new data under a new name, and start again", {.shard = object_.name});
  below_ = std::move(opened);
  return *below_;
}

MILLRACE_INLINE std::size_t cached_file::pass(std::uint64_t offset_bytes, std::span<std::byte> buffer) {
  const std::size_t got = below().read_at(offset_bytes, buffer);
  cache_counts::add(core_->counts.uncached_bytes, got);
  cache_counts::add(core_->counts.delivered_bytes, got);
  return got;
}

MILLRACE_INLINE bool cached_file::open_block(std::uint64_t number) {
  if (!block_ || block_number_ != number) {
    block_ = {};   // unlocks the block before the next block is opened, because this thread may have to evict it
    block_ = core_->folder.open(object_, number);
    block_number_ = number;
    if (block_ && number != own_block_ && is_readers_) cache_counts::add(core_->counts.hits);
  }
  return static_cast<bool>(block_);
}

MILLRACE_INLINE std::optional<std::size_t> cached_file::read_cached(std::uint64_t offset_in_block,
                                                                    std::span<std::byte> buffer) {
  const auto got = block_.read_at(offset_in_block, buffer);
  if (got) {
    cache_counts::add(core_->counts.delivered_bytes, *got);
  } else {
    core_->folder.drop_damaged(object_, block_number_, block_);
    block_ = {};
  }
  return got;
}

MILLRACE_INLINE std::size_t cached_file::read_at(std::uint64_t offset_bytes, std::span<std::byte> buffer) {
  if (offset_bytes >= object_.identity.size_bytes || buffer.empty()) return 0;
  const std::uint64_t block_bytes = core_->folder.layout().block_bytes, number = offset_bytes / block_bytes;
  const std::uint64_t in_block = offset_bytes % block_bytes;
  if (number == passed_block_) return pass(offset_bytes, buffer);
  passed_block_ = ~std::uint64_t{0};
  if (open_block(number))
    if (const auto got = read_cached(in_block, buffer)) return *got;
  cache_turn turn = core_->folder.acquire_turn(object_, number);
  if (turn.is_mine()) return fetch(std::move(turn), number, offset_bytes, buffer);
  if (turn.has_appeared() && open_block(number))
    if (const auto got = read_cached(in_block, buffer)) return *got;
  passed_block_ = number;
  return pass(offset_bytes, buffer);
}

MILLRACE_INLINE void cached_file::will_read(std::span<const byte_range> ranges) {
  const std::uint64_t bytes = core_->folder.layout().block_bytes;
  std::vector<byte_range> missing;
  std::uint64_t next = 0;   // the number of the last block, plus 1
  for (const byte_range& r : ranges) {
    if (r.offset_bytes >= object_.identity.size_bytes || r.size_bytes == 0) continue;
    const std::uint64_t end = r.offset_bytes + std::min(r.size_bytes, object_.identity.size_bytes - r.offset_bytes);
    for (std::uint64_t n = std::max(r.offset_bytes / bytes, next); n * bytes < end; ++n) {
      next = n + 1;
      if (core_->folder.has(object_, n)) continue;
      if (!missing.empty() && missing.back().offset_bytes + missing.back().size_bytes == n * bytes)
        missing.back().size_bytes += bytes;
      else missing.push_back({n * bytes, bytes});
    }
  }
  if (!missing.empty() || below_) try {
      below().will_read(missing);
    } catch (const error&) {   // the later read reports the error
    }
}

MILLRACE_INLINE std::size_t cached_file::fetch(cache_turn turn, std::uint64_t number, std::uint64_t offset_bytes,
                                               std::span<std::byte> buffer) {
  const std::uint64_t begin = number * core_->folder.layout().block_bytes;
  const std::size_t size = core_->folder.block_bytes(object_, number);
  fetched_block block(*core_);
  block.read(below(), begin, size);
  cache_counts::add(core_->counts.fetched_bytes, block.bytes().size());
  if (block.bytes().size() == size) {
    cache_counts::add(core_->counts.misses);
    own_block_ = number;
    core_->folder.store(turn, object_, number, block.bytes());
  } else {
    passed_block_ = number;
  }
  const std::span<const std::byte> from = block.bytes().subspan(
      std::min<std::size_t>(block.bytes().size(), offset_bytes - begin));
  // The bytes before an error are valid. The bytes after it may be readable, too.
  if (from.empty()) {
    if (block.failure() && begin + block.bytes().size() == offset_bytes) std::rethrow_exception(block.failure());
    return pass(offset_bytes, buffer);
  }
  const std::size_t bytes = std::min(from.size(), buffer.size());
  std::memcpy(buffer.data(), from.data(), bytes);
  cache_counts::add(core_->counts.delivered_bytes, bytes);
  return bytes;
}

MILLRACE_INLINE bool cached_file::prefetch(std::uint64_t number) {
  if (open_block(number)) return true;
  cache_turn turn = core_->folder.acquire_turn(object_, number, false);
  if (!turn.is_mine()) return turn.has_appeared();
  fetched_block block(*core_);
  block.read(below(), number * core_->folder.layout().block_bytes, core_->folder.block_bytes(object_, number));
  cache_counts::add(core_->counts.fetched_bytes, block.bytes().size());
  if (block.bytes().size() < core_->folder.block_bytes(object_, number)) return false;
  cache_counts::add(core_->counts.prefetched_bytes, block.bytes().size());
  return core_->folder.store(turn, object_, number, block.bytes());
}

MILLRACE_INLINE cached_storage::cached_storage(std::shared_ptr<storage_interface> below, const cache_options& o,
                                               const cache_layout& layout)
    : ahead_files_(o.prefetched_files) {
  if (!below)
    throw setup_error("the cache cannot wrap the local file system: expected a remote storage",
                      "Pass the remote storage that contains the data");
  if (o.folder.empty())
    throw setup_error("the cache has no folder", "Set .folder to a folder on a local disk, such as /scratch/mr");
  if (!(o.keep_free_share >= 0 && o.keep_free_share <= 1))
    throw setup_error("keep_free_share is out of range: got " + std::to_string(o.keep_free_share) + ", expected 0 to 1",
                      "Use for example 0.05, which keeps 5 % of the file system free");
  if (o.wait_limit.count() < 0)
    throw setup_error(
        "wait_limit is out of range: got " + std::to_string(o.wait_limit.count()) + " ns, expected at least 0",
        "Use for example 30 s, in which most networks transfer a cache block of 8 MiB");
  core_ = std::make_shared<cache_core>(std::move(below), o, layout);
}

MILLRACE_INLINE std::unique_ptr<stored_file> cached_storage::open(const std::string& name) {
  auto identity = core_->below->find(name);
  if (!identity) return nullptr;
  if (identity->version.empty()) {
    core_->counts.report_unversioned(name);
    return core_->below->open(name);
  }
  return std::make_unique<cached_file>(core_, cached_object{.name = name, .identity = std::move(*identity)});
}

MILLRACE_INLINE cached_storage::~cached_storage() {
  core_->plan.stop();
  for (std::thread& t : fetching_) t.join();
}

MILLRACE_INLINE void cached_storage::expect(std::span<const std::string> names) {
  if (ahead_files_ == 0 || names.empty()) return;
  core_->plan.expect(names);
  const std::lock_guard lock(mutex_);
  if (!fetching_.empty()) return;
  try {
    start_threads(fetching_, ahead_files_, [this](std::size_t) { fetch_ahead(); });
  } catch (const io_error& e) {
    core_->counts.report_trouble("the cache prefetches with fewer threads: " + e.message());
  }
}

MILLRACE_INLINE void cached_storage::fetch_ahead() {
  constexpr std::int64_t pause_ns = 100'000'000;   // after an error, or if the disk is full
  while (const auto name = core_->plan.next()) try {
      auto identity = core_->below->find(*name);
      if (!identity || identity->version.empty()) continue;
      cached_file file(core_, {.name = *name, .identity = std::move(*identity)});
      file.mark_as_prefetch();
      const byte_range all{};
      file.will_read({&all, 1});
      for (std::uint64_t block = 0; block < file.blocks() && core_->plan.wait_for_room(*name); ++block) {
        if (!file.prefetch(block)) {
          posix_files::sleep_ns(pause_ns);
          break;
        }
        core_->plan.add(*name, core_->folder.block_bytes({.name = *name, .identity = file.identity()}, block));
      }
    } catch (...) {   // a reader gets the same error when it reads these bytes
      posix_files::sleep_ns(pause_ns);
    }
}

}}}   // namespace millrace::detail
