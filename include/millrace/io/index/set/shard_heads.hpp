// The heads of the indexes of all shards at a start: from a set index if there is one, and else from each index.
//
//   auto all = mr::detail::find_shard_heads(names, {.build = {.heads_only = true}, .set_index = "s3://b/my.set"});
//   all.heads[k].samples;
//
// A set index (set_index.hpp) is the named one, or "set.millrace-index" in the common folder of the shards of a
// storage. Local shards have none unless it is named: their indexes are fast to read. Other shards are queried, as by
// build_indexes().
// A shard of a storage is not queried; the storage receives the identity in the set index (storage_interface::assume).
// Therefore an outdated set index is detected when the shard is read. Local shards must have the sizes in it.
// Errors: those of build_indexes(), and data_error for a set index that is not valid, or does not match; io_error if
// the named one cannot be read. Threads: starts its own and waits for them.
#pragma once

#include <millrace/io/index/format/set_index.hpp>
#include <millrace/io/index/set/index_build.hpp>

#include <optional>
#include <span>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Options of find_shard_heads().
struct shard_heads_options {
  index_build_options build{};
  std::string set_index{};   ///< name of a file in the storage; empty: the one in the folder of the shards, if any
};

/// Returns the set index of these shards; nothing if there is none. `named`: as in shard_heads_options.
std::optional<set_index> load_set_index(const std::vector<std::string>& shards, const storage& at,
                                        const std::string& named);

/// Returns the heads of all shards, and the indexes that had to be built.
shard_indexes find_shard_heads(const std::vector<std::string>& shards, const shard_heads_options& options);

/// Returns the set index of these shards, and builds missing indexes. Omits shards that cannot have an index. Names are
/// relative to the common folder of the shards.
set_index build_set_index(const std::vector<std::string>& shards, index_build_options options);

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/index/set/impl/shard_heads.inl>
#endif
