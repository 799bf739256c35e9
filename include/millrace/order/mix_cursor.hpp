// Iterates over the positions of one rank in a mix (several sources by weight), starting at any position.
//
//   mr::detail::mix_cursor mine(plan, {.world = {.rank = 1, .size = 4}, .epoch = 3, .position = resumed_at});
//   while (auto s = mine.next()) read(s->sample.shard, s->sample.index);     // to the end of the epoch
//   mine.move_to(4, 0);                                                      // continues with the next epoch
//
// Works like lane_cursor, and has one lane_cursor for each source. A mix_cursor walks all positions, and skips those of
// other ranks. The member `pass` of a sample counts the passes of the sample's source.
// Errors: the errors of lane_cursor. Threads: not thread-safe. Lifetime: the mix_plan must outlive the cursor.
#pragma once

#include <millrace/order/lane_cursor.hpp>
#include <millrace/order/mix_plan.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Iterates over the samples of one rank in a mix.
class mix_cursor {
 public:
  using options = lane_cursor_options;

  /// Throws setup_error if the world size does not divide the global batch, or the position is after the end of the
  /// epoch.
  explicit mix_cursor(const mix_plan& plan, const options& o = {}) : plan_(&plan), world_(o.world) {
    plan.check(world_);
    for (std::size_t i = 0; i < plan.sources(); ++i) sources_.emplace_back(plan.source(i));
    move_to(o.epoch, o.position);
  }

  /// Moves to the rank's first position at or after `position`. Throws setup_error if `position` is after the end of
  /// the epoch.
  void move_to(std::uint64_t epoch, std::uint64_t position) {
    const std::vector<std::uint64_t> counts = plan_->counts_before(epoch, position);
    for (std::size_t i = 0; i < sources_.size(); ++i) sources_[i].move_to(0, counts[i]);
    epoch_ = epoch;
    walked_ = position;
    ordinal_ = plan_->ordinal_of(epoch, position);
    position_ = position + (world_.rank + world_.size - position % world_.size) % world_.size;
    enter_phase();
  }

  /// Returns the current epoch.
  std::uint64_t epoch() const noexcept { return epoch_; }
  /// Returns the position of the sample that next() returns.
  std::uint64_t position() const noexcept { return position_; }

  /// Returns the next sample of the rank. At the end of the epoch, returns nothing until move_to() is called.
  std::optional<ordered_sample> next() {
    if (position_ >= plan_->positions()) return std::nullopt;
    while (walked_ < position_) static_cast<void>(walk());
    ordered_sample s = walk();
    s.epoch = epoch_;
    s.position = position_;
    position_ += world_.size;
    return s;
  }

 private:
  static constexpr std::size_t many_sources = 64;   // more cursors do not fit into the CPU's cache

  void enter_phase() {
    phase_ = plan_->phase_at(ordinal_);
    in_period_ = (ordinal_ - phase_->begin) % phase_->pattern.period();
    phase_left_ = phase_->end - ordinal_;
  }
  ordered_sample walk() {
    if (phase_left_ == 0) enter_phase();
    const std::size_t source = phase_->pattern.source_at(in_period_);
    if (sources_.size() >= many_sources) {
      sources_[phase_->pattern.source_at(in_period_ + 8)].prefetch();
      sources_[phase_->pattern.source_at(in_period_ + 4)].prefetch_tables();
    }
    if (++in_period_ == phase_->pattern.period()) in_period_ = 0;
    --phase_left_;
    ++walked_;
    ++ordinal_;
    ordered_sample s = *sources_[source].next();
    s.sample.shard += plan_->first_shard(source);
    return s;
  }

  const mix_plan* plan_;
  world world_;
  std::vector<lane_cursor> sources_;
  std::uint64_t epoch_ = 0, position_ = 0;
  // next position of the walk in the epoch, and the result of mix_plan::ordinal_of() for this position
  std::uint64_t walked_ = 0, ordinal_ = 0;
  mix_plan::phase phase_;
  std::uint64_t in_period_ = 0, phase_left_ = 0;
};

}}}   // namespace millrace::detail
