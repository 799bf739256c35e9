// cached: caches the files of a storage on a local disk.
//
//   mr::cached data(vault(), {.folder = "/scratch/mr", .bytes = 500'000'000'000});   // vault: your own storage
//   auto flow = mr::shards("vault:train-{000..146}.tar", {.storage = data});
//   std::puts(data.statistics().text().c_str());           // 99.1 % of 1.3 TB read from the cache: ...
//
// All data is fetched once, in blocks of 8 MiB. All processes of a machine and later runs share a folder. Blocks are
// evicted when the maximum number of bytes is reached, or when too little of the disk is free. The storage must return
// the version of a file. A file without a version is not cached, and one notice reports this. A full or failing disk is
// reported once, and the run continues without the cache. The folder may be removed at any time.
// Errors: setup_error for invalid options; otherwise the errors of the storage.
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
  /// Throws setup_error if `over` is the local file system, if no folder is named, or if the share is not between 0
  /// and 1.
  cached(const storage& over, const cache_options& o)
      : cached(std::make_shared<detail::cached_storage>(over.place(), o)) {}

  /// Returns the statistics of the cache in this process so far.
  cache_statistics statistics() const noexcept { return storage_->statistics(); }
  operator std::shared_ptr<storage_interface>() const noexcept { return storage_; }   // NOLINT(*-explicit-*)

 private:
  explicit cached(std::shared_ptr<detail::cached_storage> cache) : storage(cache), storage_(std::move(cache)) {}

  std::shared_ptr<detail::cached_storage> storage_;
};

}}  // namespace millrace
