// Definitions for join.hpp.
#pragma once

#include <millrace/sources/join.hpp>

#include <millrace/base/error.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE joined_source::joined_source(std::vector<shards_source> sets, join_options options)
    : sets_(std::move(sets)), options_(std::move(options)), joined_(std::make_shared<joined>()) {
  if (sets_.size() < 2)
    throw setup_error("join() has too few sets: got " + std::to_string(sets_.size()) + ", expected at least 2",
                      "Pass a vector of two or more shards(...)");
}

MILLRACE_INLINE bool joined_source::uses_index(const index_use& use) const {
  const std::lock_guard lock(joined_->mutex);
  std::shared_ptr<joined_data>& data = joined_->data[use.tolerates_damage];
  if (data) return true;
  std::vector<std::shared_ptr<shard_data>> sets;
  for (const shards_source& set : sets_) {
    const auto fail = [&](const std::string& reason) {
      throw setup_error(
          "join() needs an index of each set, but set " + std::to_string(sets.size() + 1) + " has none: " + reason,
          "Unpack compressed shards to plain tars, and do not set .index = mr::index::off");
    };
    try {
      if (!set.uses_index(use)) fail(set.why_streamed().empty() ? ".index is off" : set.why_streamed());
    } catch (const compressed_shard& e) {
      fail(e.message());
    }
    sets.push_back(set.data(use.tolerates_damage));
  }
  data = std::make_shared<joined_data>(std::move(sets), options_, use.notices);
  return true;
}

MILLRACE_INLINE owner<planned_run> joined_source::plan(const indexed_run_options& o) const {
  const std::lock_guard lock(joined_->mutex);
  return make_owner<planned>(joined_->data[o.tolerates_damage], o);
}

#ifdef MILLRACE_COMPILED
template class indexed_source<joined_data, exact_order>;
template class indexed_run<joined_data>;
template class reorder_buffer<indexed_source<joined_data, exact_order>>;
template class read_stage_base<indexed_source<joined_data, exact_order>>;
template class shard_read_stage<indexed_source<joined_data, exact_order>>;
#endif

}}}   // namespace millrace::detail
