// cached: caches the files of a storage on a local disk.
//
//   mr::cached data(vault(), {.folder = "/scratch/mr", .bytes = 500'000'000'000});   // vault: your own storage
//   auto flow = mr::shards("vault:train-{000..146}.tar", {.storage = data});
//   std::puts(data.statistics().text().c_str());           // 99.1 % of 1.3 TB read from the cache: ...
//
// All data is fetched once, in blocks of 8 MiB. The processes of a machine share a folder, and so do later runs. Blocks
// are evicted when the limit of bytes is reached, or when too little of the disk is free. The storage must return the
// version of a file; a file without one is not cached, which is reported once. A full or failing disk is reported once,
// and the run continues without it. The folder may be removed at any time.
// Errors: setup_error for invalid options; else those of the storage.
// Threads: any number. Lifetime: a copy is the same cache.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/io/cache/cached_storage.hpp>
#include <millrace/io/file/storage.hpp>

#include <memory>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

/// A storage that caches the files of another one on a local disk.
class cached : public storage {
 public:
  /// Throws setup_error for the local file system, without a folder, and for a share that is not between 0 and 1.
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
