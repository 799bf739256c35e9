// Finds where to enter the lanes of a source without an index: at which shard, and how many samples precede it.
//
//   auto at = mr::detail::find_lane_starts(
//       source, {.order = order.settings(), .lanes = 48, .world = mine, .ordinal = 64'000});
//   at.lanes;  at.turn;     // this rank's lanes, for interleaved_read_stage
//   at.counted;             // number of shards that were read through to count their samples
//
// `ordinal` says how many samples this rank has behind it. Only counting tells the rest: how many of them each lane has
// given, in which pass it is, and which shard holds its next sample.
// Several threads count. They read each shard at most once, and only the shards that `ordinal` requires. At the start
// of a run they read nothing, and they never read more than the data set once. The exception is a source whose shards
// differ from pass to pass (without same_every_pass): it is read through from the beginning of the run.
// Errors: those of the source, completed with the shard's name; data_error if the rank's share has no sample.
// Threads: the caller, and up to `threads` - 1 more that end before the call returns.
#pragma once

#include <millrace/item/world.hpp>
#include <millrace/read/stage/interleaved_read_stage.hpp>

#include <unordered_map>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The entry points of one rank's lanes.
struct lane_starts {
  std::vector<lane_start> lanes{};
  std::size_t turn = 0;            ///< index of the lane that gives the next sample
  std::uint64_t counted = 0;       ///< shards that were read through to count their samples
};

/// Options of find_lane_starts().
struct lane_starts_options {
  shard_order::options order{};     ///< order of all lanes together
  std::size_t lanes = 1;
  millrace::world world{};
  std::uint64_t ordinal = 0;   ///< ordinal of the next sample among those of this rank
  unsigned threads = 1;
  bool behind_damage = false;   ///< the run goes on behind damaged shards: counts what they give
};

/// Holds the number of samples of each shard; counts each shard once.
template <class Source>
class shard_counts {
 public:
  shard_counts(const Source& source, bool behind_damage) : source_(&source), behind_damage_(behind_damage) {}

  std::uint64_t of(std::size_t shard, std::uint64_t pass);
  /// Returns whether of() already has the answer.
  bool knows(std::size_t shard, std::uint64_t pass);
  std::uint64_t counted() const noexcept { return counted_.load(); }

 private:
  static constexpr bool same_every_pass = requires { requires Source::same_every_pass; };

  std::uint64_t number(std::size_t shard, std::uint64_t pass) const;

  struct entry {
    std::mutex mutex;
    std::atomic<bool> known{false};
    std::uint64_t samples = 0;
  };

  std::uint64_t read_through(std::size_t shard, std::uint64_t pass) const;

  const Source* const source_;
  const bool behind_damage_;
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, entry> entries_;   // by pass and shard
  std::atomic<std::uint64_t> counted_{0};
};

/// The lanes of one rank in one pass, with the known sample counts of their shards.
template <class Source>
class counted_pass {
 public:
  struct lane {
    std::vector<std::size_t> shards{};
    std::vector<std::uint64_t> ends{};   // for each counted shard: samples of the lane up to its end

    std::uint64_t known() const noexcept { return ends.empty() ? 0 : ends.back(); }
    bool complete() const noexcept { return ends.size() == shards.size(); }
  };

  counted_pass(const lane_starts_options& o, std::uint64_t pass, shard_counts<Source>& counts);

  const std::vector<lane>& lanes() const noexcept { return lanes_; }
  /// Returns the samples that the rank gives in the first `rounds` rounds: in a round each lane gives one sample.
  /// The result is right only up to certain_rounds().
  std::uint64_t given_in(std::uint64_t rounds) const noexcept;
  /// Returns the number of rounds in which no lane needs an uncounted shard; the greatest number if all are counted.
  std::uint64_t certain_rounds() const noexcept;

  /// Counts shards until ordinal `ordinal` is found in the pass, or until the pass ends.
  void count_to(std::uint64_t ordinal);

 private:
  void count_rounds(std::uint64_t rounds);
  static bool wants(const lane& l, std::uint64_t rounds) noexcept { return !l.complete() && l.known() < rounds; }
  void count_shard(lane& l) { l.ends.push_back(l.known() + counts_->of(l.shards[l.ends.size()], pass_)); }

  const lane_starts_options* const options_;
  const std::uint64_t pass_;
  shard_counts<Source>* const counts_;
  std::vector<lane> lanes_;
};

/// Sets where to enter a lane that has given `at.ordinal` samples of pass `pass`.
template <class Lane>
void enter_lane(lane_start& at, const Lane& l, std::uint64_t pass) {
  const std::uint64_t wanted = shard_order(at.order).first_needed_for(at.ordinal);
  at.pass = pass;
  if (l.complete() && at.ordinal == l.known()) {
    ++at.pass;
    at.ordinal = 0;
    return;
  }
  while (at.shard < l.ends.size() && l.ends[at.shard] <= wanted) at.sample = l.ends[at.shard++];
}

/// Returns where each lane of this rank is entered, so that the rank goes on with sample `ordinal`.
/// Throws the errors of the source; data_error if 100 passes in turn have no sample for this rank.
template <class Source>
lane_starts find_lane_starts(const Source& source, const lane_starts_options& o) {
  lane_starts found;
  const std::size_t count = o.lanes / o.world.size;
  for (std::size_t i = 0; i < count; ++i) {
    lane_start& at = found.lanes.emplace_back();
    at.order = o.order;
    at.order.lane = o.world.rank + i * o.world.size;
    at.order.lanes = o.lanes;
    // Rounded up, so that a window of all samples covers even shares of them.
    const std::size_t all = o.order.window + (o.order.permutes ? o.lanes - 1 : 0);
    at.order.window = std::max<std::size_t>(1, all / o.lanes);
  }
  if (o.ordinal == 0) return found;
  shard_counts<Source> counts(source, o.behind_damage);
  std::uint64_t left = o.ordinal, empty_passes = 0;
  for (std::uint64_t pass = 0;; ++pass) {
    counted_pass<Source> counted(o, pass, counts);
    counted.count_to(left);
    const std::uint64_t certain = counted.certain_rounds(), given = counted.given_in(certain);
    if (certain == ~std::uint64_t{0} && given <= left) {   // the pass is over
      left -= given;
      empty_passes = given == 0 ? empty_passes + 1 : 0;
      if (empty_passes == interleaved_read_stage<Source>::max_empty_passes)
        throw empty_share_error(empty_passes, found.lanes.front().order);
      continue;
    }
    std::uint64_t rounds = 0;   // complete rounds
    for (std::uint64_t above = std::min(certain, left + 1); rounds < above;) {
      const std::uint64_t middle = rounds + (above - rounds + 1) / 2;
      if (counted.given_in(middle) <= left) rounds = middle;
      else above = middle - 1;
    }
    left -= counted.given_in(rounds);
    for (std::size_t i = 0; i < count; ++i) {
      const auto& l = counted.lanes()[i];
      found.lanes[i].ordinal = std::min(l.known(), rounds);
      if (left > 0 && l.known() > rounds) {
        ++found.lanes[i].ordinal;
        found.turn = i + 1;
        --left;
      }
      enter_lane(found.lanes[i], l, pass);
    }
    found.counted = counts.counted();
    return found;
  }
}

}}}  // namespace millrace::detail

#include <millrace/read/stage/lane_starts.tpl.hpp>
