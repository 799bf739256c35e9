// For a resumed run over a source without an index, finds the point from which each lane (interleaved sequence of
// shards) continues.
//
//   auto at = mr::detail::find_lane_starts(
//       source, {.order = order.settings(), .lanes = 48, .world = mine, .ordinal = 64'000});
//   at.lanes;  at.turn;     // this rank's lanes, for interleaved_read_stage
//   at.counted;             // number of shards that were read completely to count their samples
//
// `ordinal` is the number of samples that this rank has already delivered. For each lane, the function determines the
// number of delivered samples, the current pass, and the shard of the next sample. Several threads read shards to count
// their samples. The threads read only the necessary shards, each at most once. If the type of the source does not
// declare same_every_pass (flow/stage.hpp), the threads read the shards of all passes since the beginning of the run.
// Errors: the errors of the source, with the name of the shard added; data_error if the shards of this rank have no
// sample. Threads: the calling thread, and up to `threads` - 1 more threads, which end before the call returns.
#pragma once

#include <millrace/flow/stage.hpp>
#include <millrace/item/world.hpp>
#include <millrace/read/stage/interleaved_read_stage.hpp>

#include <unordered_map>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The start points of one rank's lanes.
struct lane_starts {
  std::vector<lane_start> lanes{};
  std::size_t turn = 0;        ///< index of the next sample's lane
  std::uint64_t counted = 0;   ///< number of shards that were read completely to count their samples
};

/// Options of find_lane_starts().
struct lane_starts_options {
  shard_order::options order{};   ///< order of all lanes
  std::size_t lanes = 1;
  millrace::world world{};
  std::uint64_t ordinal = 0;   ///< number of samples that this rank has already delivered
  unsigned threads = 1;
  /// If true, the run continues after a damaged shard. The count of this shard is the number of its readable samples.
  /// If the source states a larger number for the shard, the count is the stated number.
  bool tolerates_damage = false;
};

/// Counts the samples of a shard when their number is first requested, and stores the number.
template <class Source>
class lane_shard_counts {
 public:
  lane_shard_counts(const Source& source, bool tolerates_damage)
      : source_(&source), tolerates_damage_(tolerates_damage) {}

  std::uint64_t of(std::size_t shard, std::uint64_t pass);
  /// Returns whether the samples of the shard have been counted.
  bool has(std::size_t shard, std::uint64_t pass);
  std::uint64_t counted() const noexcept { return counted_.load(); }

 private:
  std::uint64_t number(std::size_t shard, std::uint64_t pass) const;

  struct entry {
    std::mutex mutex;
    std::atomic<bool> is_counted{false};
    std::uint64_t samples = 0;
  };

  std::uint64_t read_through(std::size_t shard, std::uint64_t pass) const;

  const Source* const source_;
  const bool tolerates_damage_;
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, entry> entries_;   // the key combines pass and shard
  std::atomic<std::uint64_t> counted_{0};
};

/// The lanes of one rank in one pass, with the sample counts determined so far.
template <class Source>
class counted_lane_pass {
 public:
  struct lane {
    std::vector<std::size_t> shards{};
    // For each counted shard: the number of samples in the lane up to the end of the shard.
    std::vector<std::uint64_t> ends{};

    std::uint64_t counted_samples() const noexcept { return ends.empty() ? 0 : ends.back(); }
    bool complete() const noexcept { return ends.size() == shards.size(); }
  };

  counted_lane_pass(const lane_starts_options& o, std::uint64_t pass, lane_shard_counts<Source>& counts);

  const std::vector<lane>& lanes() const noexcept { return lanes_; }
  /// Returns the number of samples that the rank delivers in the first `rounds` rounds. In a round, each lane with
  /// remaining samples delivers one. `rounds` must not exceed certain_rounds().
  std::uint64_t delivered_in(std::uint64_t rounds) const noexcept;
  /// Returns the greatest number of rounds for which delivered_in() needs no samples of uncounted shards. Returns the
  /// greatest std::uint64_t if all shards are counted.
  std::uint64_t certain_rounds() const noexcept;

  /// Counts shards until the counted shards contain the rank's first `ordinal` samples of the pass, or until all shards
  /// of the rank are counted.
  void count_to(std::uint64_t ordinal);

 private:
  void count_rounds(std::uint64_t rounds);
  static bool needs_count(const lane& l, std::uint64_t rounds) noexcept {
    return !l.complete() && l.counted_samples() < rounds;
  }
  void count_shard(lane& l) { l.ends.push_back(l.counted_samples() + counts_->of(l.shards[l.ends.size()], pass_)); }

  const lane_starts_options* const options_;
  const std::uint64_t pass_;
  lane_shard_counts<Source>* const counts_;
  std::vector<lane> lanes_;
};

/// Sets the start point of a lane that has delivered `at.ordinal` samples of pass `pass`.
template <class Lane>
void enter_read_lane(lane_start& at, const Lane& l, std::uint64_t pass) {
  const std::uint64_t needed = shard_order(at.order).first_needed_for(at.ordinal);
  at.pass = pass;
  if (l.complete() && at.ordinal == l.counted_samples()) {
    ++at.pass;
    at.ordinal = 0;
    return;
  }
  while (at.shard < l.ends.size() && l.ends[at.shard] <= needed) at.sample = l.ends[at.shard++];
}

/// Returns the start point of each lane of this rank, so that the rank continues with sample `ordinal`. Throws the
/// errors of the source, and data_error if 100 consecutive passes have no sample for this rank.
template <class Source>
MILLRACE_RARE lane_starts find_lane_starts(const Source& source, const lane_starts_options& o) {
  lane_starts starts;
  const std::size_t count = o.lanes / o.world.size;
  for (std::size_t i = 0; i < count; ++i) {
    lane_start& at = starts.lanes.emplace_back();
    at.order = o.order;
    at.order.lane = o.world.rank + i * o.world.size;
    at.order.lanes = o.lanes;
    // The window of a lane is rounded up. Therefore, if all lanes have the same number of samples, a window of all
    // samples contains each lane completely.
    const std::size_t all = o.order.window + (o.order.permutes ? o.lanes - 1 : 0);
    at.order.window = std::max<std::size_t>(1, all / o.lanes);
  }
  if (o.ordinal == 0) return starts;
  lane_shard_counts<Source> counts(source, o.tolerates_damage);
  std::uint64_t left = o.ordinal, empty_passes = 0;
  for (std::uint64_t pass = 0;; ++pass) {
    counted_lane_pass<Source> counted(o, pass, counts);
    counted.count_to(left);
    const std::uint64_t certain = counted.certain_rounds(), delivered = counted.delivered_in(certain);
    if (certain == ~std::uint64_t{0} && delivered <= left) {   // the pass is over
      left -= delivered;
      empty_passes = delivered == 0 ? empty_passes + 1 : 0;
      if (empty_passes == interleaved_read_stage<Source>::max_empty_passes)
        throw empty_share_error(empty_passes, starts.lanes.front().order);
      continue;
    }
    std::uint64_t rounds = 0;   // complete rounds
    for (std::uint64_t above = std::min(certain, left + 1); rounds < above;) {
      const std::uint64_t middle = rounds + (above - rounds + 1) / 2;
      if (counted.delivered_in(middle) <= left) rounds = middle;
      else above = middle - 1;
    }
    left -= counted.delivered_in(rounds);
    for (std::size_t i = 0; i < count; ++i) {
      const auto& l = counted.lanes()[i];
      starts.lanes[i].ordinal = std::min(l.counted_samples(), rounds);
      if (left > 0 && l.counted_samples() > rounds) {
        ++starts.lanes[i].ordinal;
        starts.turn = i + 1;
        --left;
      }
      enter_read_lane(starts.lanes[i], l, pass);
    }
    starts.counted = counts.counted();
    return starts;
  }
}

template <class Source>
MILLRACE_INLINE std::uint64_t lane_shard_counts<Source>::of(std::size_t shard, std::uint64_t pass) {
  entry* e;
  {
    const std::lock_guard lock(mutex_);
    e = &entries_[number(shard, pass)];
  }
  const std::lock_guard lock(e->mutex);
  if (!e->is_counted) {
    e->samples = read_through(shard, pass);
    e->is_counted = true;
    counted_.fetch_add(1);
  }
  return e->samples;
}

template <class Source>
MILLRACE_INLINE bool lane_shard_counts<Source>::has(std::size_t shard, std::uint64_t pass) {
  const std::lock_guard lock(mutex_);
  const auto it = entries_.find(number(shard, pass));
  return it != entries_.end() && it->second.is_counted;
}

template <class Source>
MILLRACE_INLINE std::uint64_t lane_shard_counts<Source>::number(std::size_t shard, std::uint64_t pass) const {
  return (same_samples_each_pass<Source> ? 0 : pass) * source_->shards() + shard;
}

template <class Source>
MILLRACE_INLINE std::uint64_t lane_shard_counts<Source>::read_through(std::size_t shard, std::uint64_t pass) const {
  std::uint64_t samples = 0;
  try {
    auto reader = source_->open(shard, pass);
    while (reader.next()) ++samples;
    return samples;
  } catch (...) {
    if (tolerates_damage_ && is_damage_of_source(std::current_exception())) {
      if constexpr (requires { source_->stated_samples(shard); })
        return std::max(samples, source_->stated_samples(shard));
      return samples;
    }
    std::rethrow_exception(error_located_by([&] {
      error_location at{.stage = "source"};
      if constexpr (requires { source_->shard_name(shard); }) at.shard = source_->shard_name(shard);
      return at;
    }));
  }
}

template <class Source>
MILLRACE_INLINE counted_lane_pass<Source>::counted_lane_pass(const lane_starts_options& o, std::uint64_t pass,
                                                             lane_shard_counts<Source>& counts)
    : options_(&o), pass_(pass), counts_(&counts), lanes_(o.lanes / o.world.size) {
  const std::vector<std::size_t> order = shard_order(o.order).shards_of(pass);
  for (std::size_t i = 0; i < lanes_.size(); ++i)
    for (std::size_t at = o.world.rank + i * o.world.size; at < order.size(); at += o.lanes)
      lanes_[i].shards.push_back(order[at]);
}

template <class Source>
MILLRACE_INLINE std::uint64_t counted_lane_pass<Source>::delivered_in(std::uint64_t rounds) const noexcept {
  std::uint64_t delivered = 0;
  for (const lane& l : lanes_) delivered += std::min(rounds, l.counted_samples());
  return delivered;
}

template <class Source>
MILLRACE_INLINE std::uint64_t counted_lane_pass<Source>::certain_rounds() const noexcept {
  std::uint64_t certain = ~std::uint64_t{0};
  for (const lane& l : lanes_)
    if (!l.complete()) certain = std::min(certain, l.counted_samples());
  return certain;
}

template <class Source>
MILLRACE_INLINE void counted_lane_pass<Source>::count_to(std::uint64_t ordinal) {
  for (;;) {
    const std::uint64_t certain = certain_rounds(), delivered = delivered_in(certain);
    if (certain == ~std::uint64_t{0} || delivered >= ordinal) return;
    std::uint64_t active = 0;
    for (const lane& l : lanes_) active += !l.complete() || l.counted_samples() > certain;
    count_rounds(certain + (ordinal - delivered + active - 1) / active);
  }
}

template <class Source>
MILLRACE_RARE void counted_lane_pass<Source>::count_rounds(std::uint64_t rounds) {
  std::vector<std::size_t> unread;   // indexes of lanes
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    lane& l = lanes_[i];
    while (needs_count(l, rounds) && counts_->has(l.shards[l.ends.size()], pass_)) count_shard(l);
    if (needs_count(l, rounds)) unread.push_back(i);
  }
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&]() MILLRACE_RARE_CODE {
    for (std::size_t i; (i = next.fetch_add(1)) < unread.size();) try {
        lane& l = lanes_[unread[i]];
        while (needs_count(l, rounds)) count_shard(l);
      } catch (...) {
        const std::lock_guard lock(mutex);
        error = std::current_exception();
        next.store(unread.size());
      }
  };
  std::vector<std::thread> threads;
  try {
    const std::size_t count = std::min<std::size_t>(options_->threads, unread.size());
    start_threads(threads, std::max<std::size_t>(count, 1) - 1, [&](std::size_t) { work(); });
  } catch (...) {
    // If no more threads can be started, the existing threads are sufficient.
  }
  work();
  for (auto& t : threads) t.join();
  if (error) std::rethrow_exception(error);
}

}}}   // namespace millrace::detail
