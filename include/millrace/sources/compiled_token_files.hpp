// Says that the compiled library reads what token_files() names, so that programs do not compile it again.
//
//   #include <millrace/sources/token_files.hpp>      // ends with this header
//
// Without MILLRACE_COMPILED it says nothing. sources/impl/token_files.inl instantiates the templates that it names.
#pragma once

#ifdef MILLRACE_COMPILED

#include <millrace/read/stage/shard_read_stage.hpp>
#include <millrace/sources/token_files.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

extern template class ticket_input<packed>;
extern template class jitter_order<packed>;
extern template class indexed_source<token_data, exact_order>;
extern template class indexed_run<token_data>;
extern template class reorder_buffer<indexed_source<token_data, exact_order>>;
extern template class read_stage_base<indexed_source<token_data, exact_order>>;
extern template class shard_read_stage<indexed_source<token_data, exact_order>>;

}}}  // namespace millrace::detail

#endif
