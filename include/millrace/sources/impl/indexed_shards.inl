// Defines what indexed_shards.hpp declares.
#pragma once

#include <millrace/sources/indexed_shards.hpp>

#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE indexed_shards_source::indexed_shards_source(std::vector<std::string> names,
                                                             const indexed_shards_options& o)
    : data_(std::make_shared<shard_data>(
          std::move(names),
          shard_data_options{.reader = {.fields = o.fields, .limits = o.limits},
                             .files = {.cache_folder = o.index_folder, .storage = o.storage},
                             .set_index = o.set_index,
                             .notice = o.notice,
                             .strict = o.strict,
                             .choice = {.only = o.only, .without = o.without, .where = o.where,
                                        .repeats = o.repeats, .having = o.having},
                             .damaged_shards_at_most = o.damaged_shards_at_most,
                             .entries = o.entries})) {}

}  // namespace detail

#ifdef MILLRACE_COMPILED
namespace detail {

template class indexed_source<shard_data, exact_order>;
template class indexed_run<shard_data>;
template class reorder_buffer<indexed_source<shard_data, exact_order>>;
template class read_stage_base<indexed_source<shard_data, exact_order>>;
template class shard_read_stage<indexed_source<shard_data, exact_order>>;

}  // namespace detail
#endif

}}  // namespace millrace
