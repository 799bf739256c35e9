// Finds the heads of the indexes of all shards at the start: in a set index if there is one, otherwise in each index.
//
//   auto all = mr::detail::find_shard_heads(names, {.build = {.heads_only = true}, .set_index = "s3://b/my.set"});
//   all.heads[k].samples;
//
// The set index (set_index.hpp) is the file that the options name. By default it is "set.millrace-index" in the common
// folder of the shards of a storage. Local shards have no default set index, because their indexes are fast to read.
// Shards that are not in the set index are queried as in build_indexes(). A shard of a storage that is in the set index
// is not queried. Instead, the storage receives the identity in the set index (storage_interface::assume). Therefore an
// outdated set index is detected when the shard is read. Local shards must have the sizes that the set index states.
// Cost: with a set index, one request and about 1 us per shard; otherwise at least one request per shard of a storage.
// Errors: the errors of build_indexes(); data_error if the set index is not valid or does not match; io_error if the
// named set index cannot be read. Threads: starts its own threads and waits for them.
#pragma once

#include <millrace/io/file/name_list.hpp>
#include <millrace/io/index/format/set_index.hpp>
#include <millrace/io/index/set/index_build.hpp>

#include <optional>
#include <span>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Options of find_shard_heads().
struct shard_heads_options {
  index_build_options build{};
  std::string set_index{};   ///< name of a file in the storage; empty: the default file, if it exists
};

/// Returns the set index of these shards; nothing if there is none. `named`: as in shard_heads_options.
std::optional<set_index> load_set_index(const name_list& shards, const storage& at, const std::string& named);

/// Returns the heads of all shards, and the indexes that had to be built.
shard_indexes find_shard_heads(const name_list& shards, const shard_heads_options& options);

/// Builds missing indexes, and returns the set index of these shards. Omits shards that cannot have an index. Names are
/// relative to the common folder of the shards.
set_index build_set_index(const std::vector<std::string>& shards, index_build_options options);

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/index/set/impl/shard_heads.inl>
#endif
