// Writes a set index: one small file that describes all shards of a set. With a set index, a session starts without a
// separate request for each shard.
//
//   auto totals = mr::write_set_index("train-{000..146}.tar", "set.millrace-index");   // then copy it with the shards
//   std::printf("%zu shards, %llu samples\n", totals.shards, static_cast<unsigned long long>(totals.samples));
//   auto far = mr::write_set_index("s3://photos/*.tar", "set.millrace-index", {.storage = mr::remote()});
//   // After you have copied the file to s3://photos/, a flow uses it:
//   auto flow = mr::shards("s3://photos/train-{000..146}.tar", {.storage = mr::remote()});
//
// For each shard, the file contains the size, the number of samples and the digest of the members. If the shards are in
// a storage, the file also contains the version of each shard. You may copy the set index of local shards to a storage
// together with the shards. Missing indexes are built. Compressed and damaged shards are omitted, because they cannot
// have an index.
// Errors: the errors of shards() with an index; io_error if the file cannot be written.
// Threads: starts threads and waits for them.
// Format: io/index/format/set_index.hpp.
#pragma once

#include <millrace/io/file/storage.hpp>
#include <millrace/sources/list/shard_list.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of write_set_index().
struct write_set_index_options {
  std::string index_folder{};    ///< folder of the index files; by default each index is stored next to its shard
  millrace::storage storage{};   ///< storage of the shards
  notice_function notice{};      ///< receives the progress of a long call; by default it is printed to stderr
};

/// The totals of a set index.
struct set_index_totals {
  std::size_t shards = 0;
  std::size_t left_out = 0;   ///< number of shards that cannot have an index
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;   ///< bytes of the shards
};

namespace detail {

set_index_totals write_set_index_of(const std::vector<std::string>& shards, const std::string& path,
                                    const write_set_index_options& options);

}   // namespace detail

/// Writes the set index of shards to a local file. `names` is a pattern or a list, as for list_shards().
template <detail::file_names Names = std::vector<std::string>>
set_index_totals write_set_index(const Names& names, const std::string& path,
                                 const write_set_index_options& options = {}) {
  const detail::shard_listing_options listing{.at = options.storage, .notice = options.notice};
  return detail::write_set_index_of(detail::list_files(names, listing), path, options);
}

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/sources/prepare/impl/write_set_index.inl>
#endif
