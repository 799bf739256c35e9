// Where the lanes of a source without an index are entered: at which part, and how many samples lie before it.
//
//   lane_starts at = find_lane_starts(source, {.order = plan, .lanes = 48, .ranks = mine, .place = 64'000});
//   at.lanes;       // of this rank: what lane_intake wants
//   at.counted;     // parts that were read through to count their samples
//
// `place` says how many samples this rank has behind it, hence how many each of its lanes has; which part the next one
// lies in only counting can say. Each part is read at most once, by several threads, and only as far as the place makes
// necessary: nothing at the run's beginning, never more than one reading of the data set. (A source whose parts differ
// from pass to pass, as far as it says, is read through from the beginning.)
// Errors: those of the source, completed with the part's name; data_error if it has no samples.
#pragma once

#include <millrace/run/lane_intake.hpp>
#include <millrace/run/ranks.hpp>

#include <unordered_map>

namespace millrace::inline MILLRACE_ABI {

struct lane_starts {
  std::vector<lane_start> lanes{};
  std::uint64_t counted = 0;
};

struct lane_starts_options {
  plan::options order{};     ///< of all lanes together
  std::size_t lanes = 1;
  millrace::ranks ranks{};
  std::uint64_t place = 0;   ///< among the samples of this rank
  unsigned threads = 1;
};

namespace detail {

/// Samples of parts, each counted once.
template <class Source>
class part_counts {
 public:
  explicit part_counts(const Source& source) : source_(&source) {}

  std::uint64_t of(std::size_t part, std::uint64_t pass) {
    entry* found;
    {
      const std::lock_guard lock(mutex_);
      found = &entries_[(same_every_pass ? 0 : pass) * source_->parts() + part];
    }
    const std::lock_guard lock(found->mutex);
    if (!found->known) {
      found->samples = read_through(part, pass);
      found->known = true;
      counted_.fetch_add(1);
    }
    return found->samples;
  }
  std::uint64_t counted() const noexcept { return counted_.load(); }

 private:
  static constexpr bool same_every_pass = requires { requires Source::same_every_pass; };

  struct entry {
    std::mutex mutex;
    bool known = false;
    std::uint64_t samples = 0;
  };

  std::uint64_t read_through(std::size_t part, std::uint64_t pass) const {
    try {
      std::uint64_t samples = 0;
      auto reader = source_->open(part, pass);
      while (reader.next()) ++samples;
      return samples;
    } catch (...) {
      place at;
      at.stage = "source";
      if constexpr (requires { source_->part_name(part); }) at.shard = source_->part_name(part);
      std::rethrow_exception(located_exception(at));
    }
  }

  const Source* const source_;
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, entry> entries_;   // by pass and part
  std::atomic<std::uint64_t> counted_{0};
};

/// Moves a start on from the run's beginning to the part that holds the first sample which may not have come yet.
template <class Source>
void enter_lane(lane_start& at, part_counts<Source>& counts) {
  const plan order(at.order);
  const std::uint64_t wanted = order.first_needed_for(at.place);
  for (std::uint64_t empty_passes = 0; wanted > at.sample; ++at.pass, at.part = 0) {
    const std::uint64_t before = at.sample;
    for (const std::size_t part : order.parts_of(at.pass)) {
      const std::uint64_t samples = wanted > at.sample ? counts.of(part, at.pass) : 0;
      if (at.sample == wanted || at.sample + samples > wanted) return;
      at.sample += samples;
      ++at.part;
    }
    empty_passes = at.sample == before ? empty_passes + 1 : 0;
    if (empty_passes == part_order<Source>::most_empty_passes)
      throw data_error("lane " + std::to_string(at.order.lane) + " of " + std::to_string(at.order.lanes) +
                           " has no samples, and the resume point says that it had",
                       "Resume with the data that the run began with");
  }
}

}  // namespace detail

template <class Source>
lane_starts find_lane_starts(const Source& source, const lane_starts_options& o) {
  lane_starts found;
  const std::size_t count = o.lanes / o.ranks.world_size;
  for (std::size_t i = 0; i < count; ++i) {
    lane_start& at = found.lanes.emplace_back();
    at.order = o.order;
    at.order.lane = o.ranks.rank + i * o.ranks.world_size;
    at.order.lanes = o.lanes;
    at.order.window = std::max<std::size_t>(1, o.order.window / o.lanes);
    at.place = o.place / count + (i < o.place % count ? 1 : 0);
  }
  if (o.place == 0) return found;
  detail::part_counts<Source> counts(source);
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    for (std::size_t i; (i = next.fetch_add(1)) < count;) try {
        detail::enter_lane(found.lanes[i], counts);
      } catch (...) {
        const std::lock_guard lock(mutex);
        error = std::current_exception();
        next.store(count);
      }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < std::min<std::size_t>(o.threads, count); ++i) threads.emplace_back(work);
  work();
  for (auto& t : threads) t.join();
  if (error) std::rethrow_exception(error);
  found.counted = counts.counted();
  return found;
}

}  // namespace millrace::inline MILLRACE_ABI
