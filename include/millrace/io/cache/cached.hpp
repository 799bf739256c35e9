// cached: caches the files of a storage on a local disk.
//
//   mr::cached data(vault(), {.folder = "/scratch/mr", .bytes = 500'000'000'000});   // vault: your own storage
//   auto flow = mr::shards("vault:train-{000..146}.tar", {.storage = data});
//   std::puts(data.statistics().text().c_str());           // 99.1 % of 1.3 TB read from the cache: ...
//
// All processes of one user on a machine, and later runs, share the cache in this folder. Therefore each block (8 MiB
// of a file) is fetched only once.
// Blocks are evicted when the cache reaches its maximum size, or when the disk has too little free space. If the
// storage returns no version of a file, the file is not cached, and a notice reports the first such file. If the disk
// is full or fails, a notice reports the failure, and the run continues without the cache. The folder may be removed at
// any time.
// Errors: setup_error for invalid options, and the errors of the storage.
// Threads: any number of threads. Lifetime: a copy refers to the same cache.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/io/cache/cached_storage.hpp>
#include <millrace/io/file/storage.hpp>

#include <memory>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

/// A storage that caches the files of another storage on a local disk.
class cached : public storage {
 public:
  /// Caches the files of `over`. Throws setup_error if `over` is the local file system, `o.folder` is empty,
  /// keep_free_share is not in [0, 1], or wait_limit is negative.
  cached(const storage& over, const cache_options& o)
      : cached(std::make_shared<detail::cached_storage>(over.implementation(), o)) {}

  /// Returns the statistics of the cache in this process so far.
  cache_statistics statistics() const noexcept { return storage_->statistics(); }
  operator std::shared_ptr<storage_interface>() const noexcept { return storage_; }   // NOLINT(*-explicit-*)

 private:
  explicit cached(std::shared_ptr<detail::cached_storage> cache) : storage(cache), storage_(std::move(cache)) {}

  std::shared_ptr<detail::cached_storage> storage_;
};

}}   // namespace millrace
