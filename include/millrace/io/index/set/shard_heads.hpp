// The heads of the indexes of all shards at a start: from a set index where there is one, and else from each index.
//
//   auto found = mr::detail::find_shard_heads(names, {.build = {.heads_only = true}, .set_index = "s3://b/my.set"});
//   found.heads[k].samples;
//
// A set index (set_index.hpp) is the one that is named, or the one beside the shards of a storage: "set.millrace-index"
// in the folder that all shards are in. Local shards have none unless it is named: their indexes are read in no time.
// Other shards are asked for, as by build_indexes().
// A shard of a storage is not asked for; the storage is told what the set index says (storage_interface::assume). So a
// set index that is out of date is noticed when the shard is read. Local shards must have the sizes in it.
// Errors: those of build_indexes(), and data_error for a set index that is not sound, or does not fit; io_error if the
// named one cannot be read. Threads: starts its own and waits for them.
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
  std::string set_index{};   ///< name of a file where the shards are; empty: the one beside them, if there is one
};

/// Returns the set index of these shards; nothing if there is none. `named`: as in shard_heads_options.
std::optional<set_index> load_set_index(const std::vector<std::string>& shards, const storage& at,
                                        const std::string& named);

/// Returns the heads of all shards. Indexes that had to be made are there, too.
shard_indexes find_shard_heads(const std::vector<std::string>& shards, const shard_heads_options& options);

/// Returns the set index of these shards, whose indexes are made where there are none. Shards that cannot have an index
/// are left out. Names begin behind the folder that all shards are in.
set_index make_set_index(const std::vector<std::string>& shards, index_build_options options);

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/index/set/impl/shard_heads.inl>
#endif
