// Says that the compiled library reads what indexed_shards() names, so that programs do not compile it again.
//
//   #include <millrace/sources/indexed_shards.hpp>      // ends with this header
//
// Without MILLRACE_COMPILED it says nothing. sources/impl/indexed_shards.inl instantiates the templates that it names.
#pragma once

#ifdef MILLRACE_COMPILED

#include <millrace/read/stage/shard_read_stage.hpp>
#include <millrace/sources/indexed_shards.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

extern template class ticket_input<record>;
extern template class jitter_order<record>;
extern template class indexed_source<shard_data, exact_order>;
extern template class indexed_run<shard_data>;
extern template class reorder_buffer<indexed_source<shard_data, exact_order>>;
extern template class read_stage_base<indexed_source<shard_data, exact_order>>;
extern template class shard_read_stage<indexed_source<shard_data, exact_order>>;

}}}  // namespace millrace::detail

#endif
