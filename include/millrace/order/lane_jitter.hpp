// The order inside one lane: a sliding jitter that can be entered anywhere.
//
//   lane_jitter order({.seed = 7, .pass = 2, .lane = 5, .length = 26'669, .window = lane_jitter::places(170)});
//   order.at(1'000);                    // which of the lane's samples comes 1,000th
//   lane_walk walk(order, 1'000);       // from there on, one by one
//   walk.next();
//
// Sample i of a lane gets the key i + U(seed, pass, lane, i) * w, and samples come in key order (equal keys: the lower
// i first). Keys and w count in 1/65536 of a place. Why it can be entered at place j: every sample up to j - w has come
// by then, none from j + w on has, so the 2 w keys in between say the rest. A walk holds about w samples at its start
// and half a w later on; at(j) costs O(w). A window of at most one place changes nothing.
// Errors: none; at(j) wants j below the length, and a walk ends with the lane. Threads: a walk belongs to one.
#pragma once

#include <millrace/base/random.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

class lane_jitter {
 public:
  struct options {
    std::uint64_t seed = 0;
    std::uint64_t pass = 0;
    std::uint64_t lane = 0;
    std::uint64_t length = 0;   ///< in samples
    std::uint64_t window = 0;   ///< in 1/65536 of a place, so that a share of a window need not be whole
  };
  struct entry {
    std::uint64_t key = 0, index = 0;
    // The heap's front is the greatest, so these say "sorts later".
    static bool later(const entry& a, const entry& b) noexcept {
      return a.key != b.key ? a.key > b.key : a.index > b.index;
    }
    static bool sooner(const entry& a, const entry& b) noexcept { return later(b, a); }
  };

  /// Longer lanes and wider windows would overflow the keys.
  static constexpr std::uint64_t most_places = std::uint64_t{1} << 40;
  static constexpr std::uint64_t one_place = std::uint64_t{1} << 16;
  static constexpr std::uint64_t places(std::uint64_t count) noexcept { return std::min(count, most_places) << 16; }

  lane_jitter() = default;
  explicit lane_jitter(const options& o) : options_(o) {}

  const options& settings() const noexcept { return options_; }
  bool moves() const noexcept { return options_.window > one_place; }

  std::uint64_t key(std::uint64_t index) const noexcept {
    const auto& o = options_;
    rng random({.seed = o.seed, .epoch = o.pass, .sample = combine_keys(o.lane, index), .stage = jitter_stream});
    return (index << 16) + random.below(o.window);
  }

  std::uint64_t at(std::uint64_t place) const {
    if (!moves()) return place;
    std::vector<entry> around;
    static_cast<void>(gather(place, around));
    return around.front().index;
  }

  /// Puts into `around` the sample that comes at `place`, then, in no order, those that come later and that had to be
  /// looked at to say so. Returns the first index that was not looked at.
  std::uint64_t gather(std::uint64_t place, std::vector<entry>& around) const {
    const auto& o = options_;
    const std::uint64_t at = place << 16;
    const std::uint64_t begin = at < o.window ? 0 : ((at - o.window) >> 16) + 1;
    const std::uint64_t end = std::min(o.length, (at + o.window + one_place - 1) >> 16);
    around.clear();
    around.reserve(static_cast<std::size_t>(end - begin));
    for (std::uint64_t i = begin; i < end; ++i) around.push_back({key(i), i});
    // Those before `begin` have come already, so as many of these have as are still missing.
    const auto here = around.begin() + static_cast<std::ptrdiff_t>(place - begin);
    std::nth_element(around.begin(), here, around.end(), entry::sooner);
    around.erase(around.begin(), here);
    return end;
  }

 private:
  static constexpr std::uint64_t jitter_stream = ~std::uint64_t{1};   // apart from those of the stages that draw

  options options_;
};

/// A lane's samples, one after the other, from any place on.
class lane_walk {
 public:
  lane_walk() = default;
  lane_walk(const lane_jitter& order, std::uint64_t place) : order_(order), place_(place) {
    if (!order_.moves() || place_ >= order_.settings().length) return;
    arrived_ = order_.gather(place_, waiting_);
    std::make_heap(waiting_.begin(), waiting_.end(), lane_jitter::entry::later);
  }

  /// The place of the sample that next() gives.
  std::uint64_t place() const noexcept { return place_; }
  bool done() const noexcept { return place_ >= order_.settings().length; }

  std::uint64_t next() {
    if (!order_.moves()) return place_++;
    // The front is certain once no later arrival can sort before it.
    while (arrived_ < order_.settings().length && (waiting_.empty() || waiting_.front().key > arrived_ << 16)) {
      waiting_.push_back({order_.key(arrived_), arrived_});
      ++arrived_;
      std::push_heap(waiting_.begin(), waiting_.end(), lane_jitter::entry::later);
    }
    std::pop_heap(waiting_.begin(), waiting_.end(), lane_jitter::entry::later);
    const std::uint64_t index = waiting_.back().index;
    waiting_.pop_back();
    ++place_;
    return index;
  }

 private:
  lane_jitter order_;
  std::vector<lane_jitter::entry> waiting_;   // a heap
  std::uint64_t arrived_ = 0;                 // those below it are in the heap or have come
  std::uint64_t place_ = 0;
};

}}  // namespace millrace
