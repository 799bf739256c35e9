// Walks the positions of one rank, in order, from any position on.
//
//   lane_cursor mine(plan, {.ranks = {.rank = 1, .world_size = 4}, .epoch = 3, .position = resumed_at});
//   while (auto s = mine.next()) read(s->sample.part, s->sample.index);      // to the end of the epoch
//   mine.move_to(4, 0);                                                      // and on with the next
//
// From position p on it gives what a walk from the epoch's beginning gives from there on: p is all that there is to
// know. A rank starts with its first position that is not below p. Several cursors of one plan may walk apart from each
// other, one to read ahead and one to deliver. Each holds a pass's parts and, of the rank's lanes, what
// order/lane_jitter.hpp says; a lane is entered when its turn comes, so that the first sample waits for one lane only.
// Errors: setup_error for ranks that do not divide and for positions beyond the epoch's end (the end itself is none:
// nothing follows). Threads: belongs to one. Lifetime: the plan outlives it.
#pragma once

#include <millrace/order/exact_order.hpp>

#include <optional>

namespace millrace { inline namespace MILLRACE_ABI {

struct lane_cursor_options {
  millrace::world world{};
  std::uint64_t epoch = 0;
  std::uint64_t position = 0;   ///< in the epoch, of all ranks together
};

class lane_cursor {
 public:
  using options = lane_cursor_options;

  explicit lane_cursor(const exact_order& plan, const options& o = {}) : plan_(&plan), world_(o.world) {
    plan.check(world_);
    move_to(o.epoch, o.position);
  }

  void move_to(std::uint64_t epoch, std::uint64_t position) {
    // The end stands for the next epoch's beginning; what lies beyond it is a mistake.
    if (position != plan_->positions()) static_cast<void>(plan_->spot_of(epoch, position));
    epoch_ = epoch;
    position_ = position + (world_.rank + world_.size - position % world_.size) % world_.size;
  }

  std::uint64_t epoch() const noexcept { return epoch_; }
  /// Of the sample that next() gives.
  std::uint64_t position() const noexcept { return position_; }

  /// Nothing at the end of the epoch, until move_to() is called.
  std::optional<planned_sample> next() {
    if (position_ >= plan_->positions()) return std::nullopt;
    const exact_order::spot s = plan_->spot_of(epoch_, position_);
    if (!loaded_ || s.pass != pass_) load(s.pass);
    const planned_sample planned{epoch_, position_, s.pass, find(s.number)};
    position_ += world_.size;
    return planned;
  }

 private:
  struct open_lane {
    lane_walk walk{};
    std::uint64_t begin = 0;
    std::size_t near_shard = 0;
    bool entered = false;
  };

  void load(std::uint64_t pass) {
    layout_ = plan_->layout_of(pass);
    lanes_.assign(plan_->settings().shuffled ? plan_->settings().lanes / world_.size : 1, {});
    pass_ = pass;
    loaded_ = true;
  }

  located_sample find(std::uint64_t number) {
    if (!plan_->settings().shuffled) return layout_.find_from(lanes_.front().near_shard, number);
    const std::uint64_t lane = number % plan_->settings().lanes, place = number / plan_->settings().lanes;
    open_lane& at = lanes_[lane / world_.size];   // lanes of one pass that a rank meets differ by multiples
    if (!at.entered || at.walk.place() != place) {
      at.walk = lane_walk(plan_->lane_of(pass_, lane), place);
      at.begin = plan_->lane_begin(lane);
      at.entered = true;
    }
    return layout_.find_from(at.near_shard, at.begin + at.walk.next());
  }

  const exact_order* plan_;
  millrace::world world_;
  std::uint64_t epoch_ = 0, position_ = 0;
  std::uint64_t pass_ = 0;
  bool loaded_ = false;
  pass_layout layout_;
  std::vector<open_lane> lanes_;
};

}}  // namespace millrace
