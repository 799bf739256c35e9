// Iterates over the positions of one rank in an exact_order, starting at any position.
//
//   mr::detail::lane_cursor mine(order, {.world = {.rank = 1, .size = 4}, .epoch = 3, .position = resumed_at});
//   while (auto s = mine.next()) read(s->sample.shard, s->sample.index);     // to the end of the epoch
//   mine.move_to(4, 0);                                                      // continues with the next epoch
//
// The iteration begins with the rank's first position at or after the start. From there on, it delivers the same
// samples as an iteration from the start of the epoch. Several cursors may use one exact_order independently.
// Memory: the list of the shards of one pass. In addition, if the pass is a uniform permutation, the table of the
// permutation; otherwise one lane_walk for each lane of the rank (order/exact_order.hpp). A lane is an interleaved part
// of the order. Cost: if ranks share a lane, each rank walks the complete lane, at about 0.1 us per sample.
// Errors: setup_error for a world size that does not divide the global batch, and for a position after the end of the
// epoch. The end itself is a valid position, where next() returns nothing. Threads: not thread-safe.
// Lifetime: the exact_order must outlive the cursor.
#pragma once

#include <millrace/order/exact_order.hpp>

#include <optional>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The rank and the start of a cursor.
struct lane_cursor_options {
  millrace::world world{};
  std::uint64_t epoch = 0;
  std::uint64_t position = 0;   ///< position in the epoch, over all ranks
};

/// Iterates over the samples of one rank in an exact_order.
class lane_cursor {
 public:
  using options = lane_cursor_options;

  /// Throws setup_error if the world size does not divide the global batch, or the position is after the end of the
  /// epoch.
  explicit lane_cursor(const exact_order& plan, const options& o = {});

  /// Moves to the rank's first position at or after `position`. Throws setup_error if `position` is after the end of
  /// the epoch.
  void move_to(std::uint64_t epoch, std::uint64_t position);

  /// Returns the current epoch.
  std::uint64_t epoch() const noexcept { return epoch_; }
  /// Returns the position of the sample that the following call of next() returns.
  std::uint64_t position() const noexcept { return position_; }

  /// Returns the next sample of the rank. At the end of the epoch, returns nothing until move_to() is called.
  std::optional<ordered_sample> next() {
    if (position_ >= plan_->positions()) return std::nullopt;
    const exact_order::spot s = plan_->spot_of(epoch_, position_);
    if (!loaded_ || s.pass != pass_) load(s.pass);
    const ordered_sample planned{epoch_, position_, s.pass, find(s.number)};
    position_ += world_.size;
    return planned;
  }

  /// Loads this object into the CPU's cache.
  void prefetch() const noexcept {
    for (std::size_t at = 0; at < sizeof *this; at += 64) __builtin_prefetch(reinterpret_cast<const char*>(this) + at);
  }
  /// Loads into the CPU's cache the tables that next() uses. Call prefetch() some time earlier, because this function
  /// reads the object to find the tables.
  void prefetch_tables() const noexcept {
    layout_.prefetch();
    permutation_.prefetch();
    __builtin_prefetch(lanes_.data());
    __builtin_prefetch(plan_);
    __builtin_prefetch(reinterpret_cast<const char*>(plan_) + 64);
  }

 private:
  struct open_lane {
    lane_walk walk{};
    std::uint64_t begin = 0;
    std::size_t near_shard = 0;
    bool entered = false;
  };

  void load(std::uint64_t pass);
  located_sample find(std::uint64_t number);
  /// Moves the walk of a lane to an ordinal (the number of a sample in the order of the lane).
  void enter(open_lane& at, std::uint64_t lane, std::uint64_t ordinal);

  const exact_order* plan_;
  millrace::world world_;
  std::uint64_t epoch_ = 0, position_ = 0;
  std::uint64_t pass_ = 0;
  std::size_t lane_step_ = 1;   // step between the rank's lanes
  bool loaded_ = false;
  pass_layout layout_;
  pass_permutation permutation_;   // empty unless the pass is a uniform permutation
  std::vector<open_lane> lanes_;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/order/impl/lane_cursor.inl>
#endif
