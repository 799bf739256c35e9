// Loads the indexes of shards without a run over them.
#pragma once

#include <millrace/sources/shards.hpp>
#include <millrace/sync/notice_outlet.hpp>

/// Loads or builds the indexes of a flow's shards, as its first session does.
template <class Flow>
void load_indexes_of(const Flow& flow) {
  millrace::detail::notice_outlet notices(millrace::quiet);
  static_cast<void>(
      flow.source.uses_index({.one_row_per_sample = true, .tolerates_damage = false, .notices = notices}));
}
/// The same for a new flow.
template <class Names>
void load_indexes(const Names& names, const millrace::shards_options& o = {}) {
  load_indexes_of(millrace::shards(names, o));
}
