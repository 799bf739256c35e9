// Definitions for lane_cursor.hpp.
#pragma once

#include <millrace/order/lane_cursor.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE lane_cursor::lane_cursor(const exact_order& plan, const options& o) : plan_(&plan), world_(o.world) {
  plan.check(world_);
  lane_step_ = plan.lane_step(world_);
  move_to(o.epoch, o.position);
}

MILLRACE_INLINE void lane_cursor::move_to(std::uint64_t epoch, std::uint64_t position) {
  // The end of an epoch is the start of the next epoch. Later positions are errors.
  if (position != plan_->positions()) static_cast<void>(plan_->spot_of(epoch, position));
  epoch_ = epoch;
  position_ = position + (world_.rank + world_.size - position % world_.size) % world_.size;
}

MILLRACE_RARE void lane_cursor::load(std::uint64_t pass) {
  layout_ = plan_->layout_of(pass);
  const bool by_lanes = plan_->settings().shuffled && !plan_->permutes();
  lanes_.assign(by_lanes ? plan_->settings().lanes / lane_step_ : 1, {});
  if (plan_->permutes()) permutation_ = plan_->permutation_of(pass);
  pass_ = pass;
  loaded_ = true;
}

MILLRACE_INLINE located_sample lane_cursor::find(std::uint64_t number) {
  if (!plan_->settings().shuffled) return layout_.find_from(lanes_.front().near_shard, number);
  if (plan_->permutes()) return layout_.find_from(lanes_.front().near_shard, permutation_[number]);
  const std::uint64_t lane = number % plan_->settings().lanes, ordinal = number / plan_->settings().lanes;
  open_lane& at = lanes_[lane / lane_step_];
  if (!at.entered || at.walk.ordinal() != ordinal) enter(at, lane, ordinal);
  return layout_.find_from(at.near_shard, at.begin + at.walk.next());
}

MILLRACE_INLINE void lane_cursor::enter(open_lane& at, std::uint64_t lane, std::uint64_t ordinal) {
  // A lane has fewer samples of other ranks between two samples of this rank than there are ranks.
  if (!at.entered || at.walk.ordinal() > ordinal || ordinal - at.walk.ordinal() >= world_.size) {
    at.walk = lane_walk(plan_->lane_of(pass_, lane), ordinal);
    at.begin = plan_->lane_begin(lane);
    at.entered = true;
  }
  while (at.walk.ordinal() < ordinal) static_cast<void>(at.walk.next());
}

}}}   // namespace millrace::detail
