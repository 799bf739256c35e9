// Says that the compiled library reads what shards() names, so that programs do not compile it again.
//
//   #include <millrace/sources/shards.hpp>      // ends with this header
//
// Without MILLRACE_COMPILED it says nothing. sources/impl/shards.inl instantiates the templates that it names.
#pragma once

#ifdef MILLRACE_COMPILED

#include <millrace/read/run/replayed_run.hpp>
#include <millrace/sources/shards.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

extern template class ticket_input<record>;
extern template class jitter_order<record>;
extern template class reorder_buffer<shards_source>;
extern template class read_stage_base<shards_source>;
extern template class shard_read_stage<shards_source>;
extern template class interleaved_read_stage<shards_source>;
extern template class shard_counts<shards_source>;
extern template class counted_pass<shards_source>;
extern template lane_starts find_lane_starts(const shards_source&, const lane_starts_options&);
extern template std::unique_ptr<read_stage> replayed_run::read(const shards_source&, shard_read_stage_options,
                                                               sample_sink<record>&);

}}}  // namespace millrace::detail

#endif
