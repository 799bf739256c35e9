// Builds the index of a shard from its headers, without reading payloads.
//
//   mr::file_source source("train-000.tar");
//   mr::detail::shard_index index = mr::detail::scan_shard(source, pool);
//   if (index.state() == mr::detail::shard_index::shard_state::damaged) std::cerr << index.damage();
//
// Samples, keys, fields and skipped members are the same as in shard_reader. plain_tar reads ordinary archives. At the
// first unusual header, tar_reader reads the shard again from its start.
// Errors: io_error of the source; setup_error for a shard beyond the limits of an index. Damage is recorded as the
// state of the index. To get the error, start shard_reader after the last sample. An empty file is damaged.
// Threads: one at a time per source.
#pragma once

#include <millrace/io/index/format/shard_index.hpp>

#include <optional>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns the index of an ordinary shard; nothing if the shard is not ordinary.
std::optional<shard_index> scan_plain_shard(byte_source& source, block_pool& pool);

/// Returns the index of any shard, with tar_reader.
shard_index scan_any_shard(byte_source& source, block_pool& pool);

/// Returns the index of the shard.
shard_index scan_shard(byte_source& source, block_pool& pool);

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/index/format/impl/tar_index_scan.inl>
#endif
