// Defines what mix_cursor.hpp declares.
#pragma once

#include <millrace/order/mix_cursor.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE mix_cursor::mix_cursor(const mix_plan& plan, const options& o) : plan_(&plan), world_(o.world) {
  plan.check(world_);
  for (std::size_t i = 0; i < plan.sources(); ++i) sources_.emplace_back(plan.source(i));
  move_to(o.epoch, o.position);
}

MILLRACE_INLINE void mix_cursor::move_to(std::uint64_t epoch, std::uint64_t position) {
  const std::vector<std::uint64_t> counts = plan_->counts_before(epoch, position);
  for (std::size_t i = 0; i < sources_.size(); ++i) sources_[i].move_to(0, counts[i]);
  epoch_ = epoch;
  walked_ = position;
  ordinal_ = plan_->ordinal_of(epoch, position);
  position_ = position + (world_.rank + world_.size - position % world_.size) % world_.size;
  enter_phase();
}

MILLRACE_INLINE void mix_cursor::enter_phase() {
  phase_ = &plan_->phase_at(ordinal_);
  in_period_ = (ordinal_ - phase_->begin) % phase_->pattern.period();
  phase_left_ = plan_->phase_end(*phase_) - ordinal_;
}

MILLRACE_INLINE ordered_sample mix_cursor::walk() {
  if (phase_left_ == 0) enter_phase();
  const std::size_t source = phase_->pattern.source_at(in_period_);
  if (++in_period_ == phase_->pattern.period()) in_period_ = 0;
  --phase_left_;
  ++walked_;
  ++ordinal_;
  ordered_sample found = *sources_[source].next();
  found.sample.shard += plan_->first_shard(source);
  return found;
}

}}}  // namespace millrace::detail
