// Defines what shards.hpp declares.
#pragma once

#include <millrace/sources/shards.hpp>

#include <millrace/io/file/byte_source.hpp>
#include <millrace/io/tar/read/counted_beside.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE shards_source::shards_source(std::vector<std::string> names, const shards_options& options)
    : files_(std::move(names), options.storage),
      reader_options_{.fields = options.fields, .having = options.having, .limits = options.limits,
                      .strict = options.strict},
      without_marker_(std::make_shared<std::vector<std::atomic<bool>>>(files_.size())),
      pool_(std::make_shared<block_pool>()),
      reads_(std::make_shared<read_meter>()) {}

MILLRACE_INLINE shard_reader shards_source::open(std::size_t shard, std::uint64_t) const {
  return open_shard_at({.missing_marker_told = &(*without_marker_)[shard]}, files_.open(shard, *reads_), *pool_,
                       reader_options_);
}

MILLRACE_INLINE std::uint64_t shards_source::samples_told(std::size_t shard) const {
  if (!reader_options_.having.empty()) return 0;   // nobody told how many of them have the fields
  const std::uint64_t samples = counted_beside(files_.name(shard), files_.at()).samples;
  return samples > max_samples_told ? 0 : samples;
}

MILLRACE_INLINE std::optional<other_piece> shards_source::other_piece_of(const error_location& sample) const {
  constexpr std::uint64_t max_bytes = std::uint64_t{4} << 30, max_remote_bytes = std::uint64_t{256} << 20;
  for (std::size_t i = 0; i < files_.size(); ++i)
    if (files_.name(i) == sample.shard)
      return find_other_piece(open_file(files_.at(), sample.shard), sample.key, sample.offset_bytes,
                              files_.at().is_local() ? max_bytes : max_remote_bytes);
  return std::nullopt;
}

MILLRACE_INLINE shards_source shards_source::watched_in(std::shared_ptr<read_meter> meter) const {
  shards_source same = *this;
  same.reads_ = std::move(meter);
  return same;
}

}  // namespace detail

#ifdef MILLRACE_COMPILED
namespace detail {

template class ticket_input<record>;
template class jitter_order<record>;
template class reorder_buffer<shards_source>;
template class read_stage_base<shards_source>;
template class shard_read_stage<shards_source>;
template class interleaved_read_stage<shards_source>;
template class shard_counts<shards_source>;
template class counted_pass<shards_source>;
template lane_starts find_lane_starts(const shards_source&, const lane_starts_options&);
template std::unique_ptr<read_stage> replayed_run::read(const shards_source&, shard_read_stage_options,
                                                        sample_sink<record>&);

}  // namespace detail
#endif

}}  // namespace millrace
