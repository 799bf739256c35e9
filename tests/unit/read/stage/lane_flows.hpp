// Shared by the tests of lanes: sources of uneven parts, runs over them by one rank or by several, and their expected
// output.
#pragma once

#include "../run/replay_flows.hpp"

#include <algorithm>
#include <tuple>

namespace lane_flows {

inline constexpr std::size_t global_batch = 24;
using rows = std::vector<std::pair<std::int64_t, double>>;

/// 26 parts; with 48 requested lanes, 24 are used.
inline const numbers_in_shards many_shards{
    {9, 4, 13, 0, 7, 7, 1, 20, 3, 8, 8, 5, 6, 2, 11, 9, 4, 4, 0, 16, 3, 7, 12, 5, 6, 10}};
/// 3,000 samples in 8 very uneven parts.
inline const numbers_in_shards uneven_shards{{900, 20, 350, 610, 5, 540, 175, 400}};

/// 0 to 3 rows of each number.
struct copies_of {
  using output = int;
  std::size_t max_outputs(int n) const { return static_cast<std::size_t>(n % 4); }
  void push(int n, auto& emit) const {
    for (int i = 0; i < n % 4; ++i) emit(1'000 * n + i);
  }
};

template <class Source>
auto flow(const Source& source, std::size_t ranks, std::size_t window = 60, std::uint64_t seed = 7) {
  return millrace::from(source, {.seed = seed}) | millrace::shuffle({.window = window}) | millrace::map(with_draw) |
         millrace::batch<&numbered_row::number, &numbered_row::draw>({.size = global_batch / ranks});
}

inline millrace::session_options in_epochs(int threads, std::uint64_t epochs, std::uint64_t epoch_batches) {
  millrace::session_options options = quiet(threads, epochs);
  options.epoch_batches = epoch_batches;
  options.lanes = 48;
  return options;
}

/// The batches of all ranks together in the order of positions, and the text after the last one.
template <class Source>
std::pair<std::vector<rows>, std::string> run_all_ranks(const Source& source, millrace::session_options options,
                                                        std::size_t world_size, std::size_t window = 60,
                                                        std::size_t max_batches = ~std::size_t{0}) {
  std::vector<rows> all;
  std::string text;
  for (std::size_t r = 0; r < world_size; ++r) {
    options.world = {.rank = r, .size = world_size};
    const replay_trace t = run_flow(flow(source, world_size, window), options, max_batches);
    all.resize(t.batches.size(), rows(global_batch));
    for (std::size_t b = 0; b < t.batches.size(); ++b)
      for (std::size_t i = 0; i < global_batch / world_size; ++i) all[b][i * world_size + r] = t.batches[b][i];
    REQUIRE((text.empty() || text == t.positions.back()));   // every rank has the same one
    text = t.positions.back();
  }
  return {all, text};
}

inline constexpr std::size_t worlds[] = {1, 2, 3, 4, 6, 8, 12, 24};

/// The samples of one rank, pass by pass, computed by sorting: each lane's samples by their keys; then one of each lane
/// in turn, as long as it has any.
inline std::vector<rows> reference_passes(const numbers_in_shards& source, millrace::world mine, std::size_t lanes,
                                          std::size_t window, std::size_t passes) {
  using keyed = std::tuple<std::uint64_t, std::uint64_t, std::pair<std::int64_t, double>>;
  std::vector<rows> all(passes);
  for (std::uint64_t pass = 0; pass < passes; ++pass) {
    std::vector<std::vector<keyed>> sorted;
    std::size_t longest = 0;
    for (std::size_t l = mine.rank; l < lanes; l += mine.size) {
      auto& lane = sorted.emplace_back();
      const millrace::detail::shard_order plan({.seed = 7, .shards = source.shards(), .shuffled = true,
                                 .window = std::max<std::size_t>(1, (window + lanes - 1) / lanes), .lane = l,
                                 .lanes = lanes});
      for (const std::size_t shard : plan.shards_of(pass)) {
        auto reader = source.open(shard, pass);
        std::uint64_t index = 0;
        while (const auto n = reader.next()) {
          millrace::rng random({.seed = 7, .epoch = pass, .sample = millrace::detail::sample_id(shard, index++),
                                .stage = 0});
          const std::uint64_t place = lane.size();
          lane.push_back({plan.jitters() ? plan.jitter_key(pass, place) : place << 16, place, {*n, random.uniform()}});
        }
      }
      if (plan.permutes() && lane.size() <= plan.settings().window)
        for (auto& [key, place, row] : lane) key = plan.permutation_key(pass, place);
      std::sort(lane.begin(), lane.end());
      longest = std::max(longest, lane.size());
    }
    for (std::size_t round = 0; round < longest; ++round)
      for (const auto& lane : sorted)
        if (round < lane.size()) all[pass].push_back(std::get<2>(lane[round]));
  }
  return all;
}

/// The batches of all ranks.
inline std::vector<rows> reference(std::size_t world_size, std::size_t window, std::size_t batches,
                                   const numbers_in_shards& source = many_shards, std::size_t lanes = 24) {
  std::vector<rows> all(batches, rows(global_batch));
  for (std::size_t r = 0; r < world_size; ++r) {
    rows of_rank;
    for (const rows& pass : reference_passes(source, {.rank = r, .size = world_size}, lanes, window, 60))
      of_rank.insert(of_rank.end(), pass.begin(), pass.end());
    for (std::size_t i = 0; i < batches * global_batch / world_size; ++i)
      all[i * world_size / global_batch][i * world_size % global_batch + r] = of_rank.at(i);
  }
  return all;
}

}  // namespace lane_flows
