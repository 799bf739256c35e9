// At the start of a run, finds the head of each shard's index (index_summary), either in a set index or in the index
// itself.
//
//   auto all = mr::detail::find_shard_heads(names, {.build = {.heads_only = true}, .set_index = "s3://b/my.set"});
//   all.heads[k].samples;
//
// A set index (set_index.hpp) is one file that describes all shards of a set. For shards in a storage, the default set
// index is "set.millrace-index" in their common folder. Local shards have no default set index. For a shard that is not
// in the set index, the functions load or build the shard's own index (build_indexes()). If a set index contains a
// shard of a storage, no request is sent for the shard. Instead, the storage receives the shard's size and version from
// the set index (storage_interface::assume). Reading the shard fails if the set index is outdated.
// Cost with a set index: one request, and about 1 us per shard. Cost without a set index: at least one request per
// shard of a storage.
// Errors: the errors of build_indexes(). data_error if the set index is not valid or does not match the shards.
// io_error if shard_heads_options::set_index is set, but this file cannot be read. Threads: starts threads and waits
// for them.
#pragma once

#include <millrace/io/file/file_list.hpp>
#include <millrace/io/index/format/set_index.hpp>
#include <millrace/io/index/set/index_build.hpp>

#include <optional>
#include <span>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Options of find_shard_heads().
struct shard_heads_options {
  index_build_options build{};
  std::string set_index{};   ///< name of a file in the storage; if empty, the default set index is used if it exists
};

/// Returns the set index of these shards, or nothing if `named` is empty and no default set index exists. `named` is
/// the value of shard_heads_options::set_index.
std::optional<set_index> load_heads_of_set(const name_list& shards, const storage& at, const std::string& named);

/// Returns the heads of all shards, and the complete indexes that build_indexes() loaded or built.
shard_indexes find_shard_heads(const name_list& shards, const shard_heads_options& options);

/// Builds missing indexes, and returns the set index of these shards. Omits compressed and damaged shards. The names in
/// the set index are relative to the common folder of the shards.
set_index build_set_index(const std::vector<std::string>& shards, index_build_options options);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/index/set/impl/shard_heads.inl>
#endif
