// Definitions for tar_index_scan.hpp.
#pragma once

#include <millrace/io/index/format/tar_index_scan.hpp>

#include <millrace/io/index/format/shard_index_builder.hpp>
#include <millrace/io/tar/read/plain_tar.hpp>
#include <millrace/io/tar/read/tail_source.hpp>
#include <millrace/item/owner.hpp>

#include <memory>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::optional<shard_index> scan_plain_shard(byte_source& source, block_pool& pool) {
  shard_index_builder build;
  plain_tar tar(source, pool);
  for (;;) {
    switch (tar.next()) {
      case plain_tar::result::member: build.add(tar.member()); break;
      case plain_tar::result::end: return build.finish();
      case plain_tar::result::odd: return std::nullopt;
    }
  }
}

MILLRACE_INLINE shard_index scan_any_shard(byte_source& source, block_pool& pool) {
  shard_index_builder build;
  owner<tar_reader> tar;
  try {
    tar = make_owner<tar_reader>(std::unique_ptr<byte_source>(new borrowed_byte_source(source)), pool);
    if (tar->compressed()) return {{.state = shard_index::shard_state::compressed}, index_columns(index_counts{})};
    std::optional<std::uint64_t> expected_end;
    for (;;) {
      const auto member = tar->next();
      // If a payload uses more or less space in the archive than its header states, the payload has holes.
      if (expected_end && *expected_end != (member ? member->offset_bytes : tar->end_marker_at()))
        build.mark_last_as_pieces();
      if (!member) break;
      build.add(*member);
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

MILLRACE_INLINE shard_index scan_shard(byte_source& source, block_pool& pool) {
  const byte_range all{};   // one range, because one request for each header would be slower
  source.will_read({&all, 1});
  if (auto index = scan_plain_shard(source, pool)) return std::move(*index);
  source.will_read({&all, 1});
  return scan_any_shard(source, pool);
}

}}}   // namespace millrace::detail
