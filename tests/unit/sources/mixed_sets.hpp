// Three small data sets, and runs over their mix.
#pragma once

#include "../../temporary_folder.hpp"
#include "../run/quiet_sessions.hpp"

#include <millrace/io/tar/write/shard_writer.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/mix.hpp>

#include <string>
#include <utility>
#include <vector>

namespace mr = millrace;

namespace mixed_sets {

constexpr std::size_t global_batch = 24;
struct example {
  std::int32_t label;
  double draw;
};
using rows = std::vector<std::pair<std::int32_t, double>>;

inline example prepare(const mr::record& r, mr::rng& random) {
  return {r["cls"].as<std::int32_t>(), random.uniform()};
}

/// Labels from 1,000 times the set's number.
inline std::string write_shards(const temporary_folder& folder, int set, std::vector<int> counts) {
  int label = 1'000 * set;
  for (const int count : counts) {
    mr::shard_writer shard({.pattern = folder / ("s" + std::to_string(label) + "-%d.tar")});
    for (int i = 0; i < count; ++i, ++label)
      shard.write("k" + std::to_string(label),
                  {{"cls", std::to_string(label)}, {"txt", std::string(static_cast<std::size_t>(i % 7 * 100), 'x')}});
    shard.close();
  }
  return folder.path();
}

/// Three data sets: 130, 61 and 20 samples.
struct data_sets {
  temporary_folder folders[3];
  std::string paths[3] = {write_shards(folders[0], 0, {40, 90}), write_shards(folders[1], 1, {50, 1, 10}),
                          write_shards(folders[2], 2, {20})};
};

struct run_options {
  std::uint64_t seed = 7, epochs = 3;
  mr::exhausted on_exhausted = mr::exhausted::repeat;
  mr::world world{};
  int threads = 2;
  std::string resume{};
  mr::source_weight weight = 0.3;   // of the second
  std::size_t window = 60;
  std::uint64_t own_seed = 0;
  std::uint64_t max_batches = ~std::uint64_t{0};
  std::uint64_t epoch_batches = 0;
};

struct delivered {
  std::vector<rows> batches;
  std::vector<std::string> positions;
  std::vector<std::uint64_t> steps, epochs;
  mr::run_stats stats{};
  mr::flow_statistics statistics{};
  std::string description;
};

inline auto flow(const data_sets& sets, const run_options& o) {
  const auto source = [&](int set) {
    return mr::shards(sets.paths[set], {.seed = o.own_seed, .fields = {"cls"}});
  };
  return mr::mix({.seed = o.seed, .on_exhausted = o.on_exhausted},
                 mr::weighted{source(0) | mr::shuffle({.window = o.window}), 0.6, "many"},
                 mr::weighted{source(1) | mr::shuffle({.window = 25}), o.weight},
                 mr::weighted{source(2) | mr::shuffle({.window = 9}), 0.1}) |
         mr::map(prepare) |
         mr::batch<&example::label, &example::draw>({.size = global_batch / o.world.size});
}

template <class Flow>
delivered run_flow(Flow flow, const run_options& o) {
  auto options = quiet(o.threads, o.epochs);
  options.world = o.world;
  options.resume = o.resume;
  options.epoch_batches = o.epoch_batches;
  mr::session session{std::move(flow), options};
  delivered d;
  for (auto& b : session) {
    auto [labels, draw] = b.columns();
    auto& some = d.batches.emplace_back();
    for (std::size_t i = 0; i < b.size(); ++i) some.emplace_back(labels.host()[i], draw.host()[i]);
    d.positions.push_back(mr::to_text(b.position()));
    d.steps.push_back(b.step());
    d.epochs.push_back(b.epoch());
    if (d.batches.size() == o.max_batches) break;
  }
  d.stats = session.stats();
  d.statistics = session.statistics();
  d.description = session.description();
  return d;
}

inline delivered run(const data_sets& sets, const run_options& o) { return run_flow(flow(sets, o), o); }

/// The batches of all ranks together, in the order of positions.
template <class MakeFlow>
std::vector<rows> run_all_ranks(const MakeFlow& make, run_options o, std::size_t world_size) {
  std::vector<rows> all;
  for (std::size_t r = 0; r < world_size; ++r) {
    o.world = {.rank = r, .size = world_size};
    const delivered d = run_flow(make(o), o);
    all.resize(d.batches.size(), rows(global_batch));
    for (std::size_t b = 0; b < d.batches.size(); ++b)
      for (std::size_t i = 0; i < d.batches[b].size(); ++i) all[b][i * world_size + r] = d.batches[b][i];
  }
  return all;
}

inline std::vector<rows> run_all_ranks(const data_sets& sets, const run_options& o, std::size_t world_size) {
  return run_all_ranks([&](const run_options& own) { return flow(sets, own); }, o, world_size);
}

inline std::size_t set_of(std::int32_t label) { return static_cast<std::size_t>(label / 1'000); }

}  // namespace mixed_sets
