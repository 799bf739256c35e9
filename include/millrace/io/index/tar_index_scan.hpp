// Makes the index of a shard from its headers, without reading payloads.
//
//   mr::file_source source("train-000.tar");
//   mr::detail::shard_index index = mr::detail::scan_shard(source, pool);
//   if (index.state() == mr::detail::shard_index::shard_state::damaged) std::cerr << index.damage();
//
// Samples, keys, fields and skipped members are those of shard_reader. plain_tar reads ordinary archives. At the first
// unusual header, tar_reader reads the shard again from its start.
// Errors: io_error of the source; setup_error for a shard beyond the limits of an index. Damage is a state of the
// index: shard_reader, started behind the last sample, throws the error. An empty file is damaged.
// Threads: one at a time per source.
#pragma once

#include <millrace/io/index/shard_index_builder.hpp>
#include <millrace/io/tar/plain_tar.hpp>

#include <memory>
#include <optional>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns the index of an ordinary shard; nothing if the shard is not ordinary.
inline std::optional<shard_index> scan_plain_shard(byte_source& source, block_pool& pool) {
  shard_index_builder build;
  plain_tar tar(source, pool);
  for (;;) {
    switch (tar.next()) {
      case plain_tar::found::member: build.take(tar.member()); break;
      case plain_tar::found::end: return build.finish();
      case plain_tar::found::odd: return std::nullopt;
    }
  }
}

/// Returns the index of any shard, by tar_reader.
inline shard_index scan_any_shard(byte_source& source, block_pool& pool) {
  shard_index_builder build;
  std::unique_ptr<tar_reader> tar;
  try {
    tar = std::make_unique<tar_reader>(std::make_unique<borrowed_source>(source), pool);
    if (tar->compressed()) return {{.state = shard_index::shard_state::compressed}, index_columns(index_counts{})};
    std::optional<std::uint64_t> expected_end;
    for (;;) {
      const auto member = tar->next();
      // A payload may take more or less space in the archive than its header says: it has holes then.
      if (expected_end && *expected_end != (member ? member->offset_bytes : tar->end_marker_at()))
        build.last_is_in_pieces();
      if (!member) break;
      build.take(*member);
      expected_end = member->payload_offset_bytes + member->size_bytes + tar_padding(member->size_bytes);
    }
    build.count_unconverted_names(tar->unconverted_names());
    build.count_missing_end_markers(tar->ended_without_marker());
    return build.finish();
  } catch (const data_error& damage) {
    if (tar) build.count_unconverted_names(tar->unconverted_names());
    if (tar && tar->certain_name()) build.end_sample_before(*tar->certain_name());
    return build.finish_damaged(damage);
  }
}

/// Returns the index of the shard.
inline shard_index scan_shard(byte_source& source, block_pool& pool) {
  auto index = detail::scan_plain_shard(source, pool);
  return index ? std::move(*index) : detail::scan_any_shard(source, pool);
}

}}}  // namespace millrace::detail
