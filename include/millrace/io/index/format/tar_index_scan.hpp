// Builds the index of a shard from the headers in the archive, without reading payloads.
//
//   mr::file_source source("train-000.tar");
//   mr::detail::shard_index index = mr::detail::scan_shard(source, pool);
//   if (index.state() == mr::detail::shard_index::shard_state::damaged) std::cerr << index.damage();
//
// Samples, keys, fields and skipped members are the same as in shard_reader. plain_tar reads ordinary archives. If it
// finds an unusual header, tar_reader reads the shard again from the start.
// Errors: io_error of the source; setup_error for a shard that exceeds the limits of an index. Damage is not an error:
// the index contains its description. An empty file is damaged.
// Threads: one at a time per source.
#pragma once

#include <millrace/io/index/format/shard_index.hpp>

#include <optional>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns the index of an ordinary shard, or nothing if the shard is not ordinary.
std::optional<shard_index> scan_plain_shard(byte_source& source, block_pool& pool);

/// Returns the index of any shard. Uses tar_reader.
shard_index scan_any_shard(byte_source& source, block_pool& pool);

/// Returns the index of a shard.
shard_index scan_shard(byte_source& source, block_pool& pool);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/index/format/impl/tar_index_scan.inl>
#endif
