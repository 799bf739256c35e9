// Definitions for replay_log.hpp.
#pragma once

#include <millrace/work/segment/replay_log.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE replay_log::replay_log(const shard_order& order, replay_start from, bool in_lanes)
    : plan_(order), from_(from), in_lanes_(in_lanes) {}

MILLRACE_INLINE void replay_log::shard_begins(const shard_begin& p) {
  const std::lock_guard lock(mutex_);
  shards_.push(shard_begin(p));
}

MILLRACE_INLINE void replay_log::batch_ends(const batch_end& b) {
  const std::lock_guard lock(mutex_);
  batches_.push(batch_end(b));
}

MILLRACE_INLINE replay_point replay_log::take() {
  const std::lock_guard lock(mutex_);
  const batch_end b = batches_.pop();
  if (from_ == replay_start::run) return {.rows = b.rows_of_run};
  if (in_lanes_) return {.ordinal = b.ordinal, .rows = b.rows_of_ordinal, .held = b.buffered_tokens};
  if (b.ends_pass) return {.pass = b.pass + 1};
  if (from_ == replay_start::pass) return {.pass = b.pass, .rows = b.rows_of_pass};
  forget_shards_before(b.pass, plan_.first_needed_for(b.ordinal));
  const shard_begin& needed = shards_[0];
  return {.pass = b.pass,
          .ordinal = b.ordinal,
          .rows = b.rows_of_ordinal,
          .shard = needed.shard,
          .first = needed.first,
          .held = b.buffered_tokens};
}

MILLRACE_INLINE void replay_log::forget_shards_before(std::uint64_t pass, std::uint64_t sample) {
  while (shards_.size() > 1 && (shards_[1].pass < pass || (shards_[1].pass == pass && shards_[1].first <= sample)))
    shards_.pop();
}

}}}   // namespace millrace::detail
