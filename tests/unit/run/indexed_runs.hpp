// Shared by the tests of indexed sources: shards of numbered samples, runs over them, by one rank or by several, and
// indexes that are loaded without a run.
#pragma once

#include "../../copying_device.hpp"
#include "../../temporary_folder.hpp"
#include "quiet_sessions.hpp"

#include <millrace/io/tar/write/shard_writer.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/shards.hpp>
#include <millrace/sync/notice_outlet.hpp>

#include <doctest/doctest.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

/// Loads or builds the indexes of a flow's shards, as its first session does.
template <class Flow>
void load_indexes_of(const Flow& flow) {
  millrace::detail::notice_outlet notices(millrace::quiet);
  static_cast<void>(
      flow.source.uses_index({.one_row_per_sample = true, .tolerates_damage = false, .notices = notices}));
}
/// The same for a new flow.
template <class Names>
void load_indexes(const Names& names, const millrace::shards_options& o = {}) {
  load_indexes_of(millrace::shards(names, o));
}

namespace indexed_runs {

constexpr int samples = 211;   // eight batches of 24, and 19 that are dropped

struct example {
  std::int32_t label;
  double draw;
};

inline example prepare(const millrace::record& r, millrace::rng& random) {
  return {r["cls"].as<std::int32_t>(), random.uniform()};
}

/// Shards of different lengths, one of them with nothing but its end marker.
inline std::string write_shards(const temporary_folder& folder) {
  int label = 0;
  for (const int count : {40, 1, 90, 80}) {
    millrace::shard_writer shard({.pattern = folder / ("s" + std::to_string(label) + "-%d.tar")});
    for (int i = 0; i < count; ++i, ++label)
      shard.write("k" + std::to_string(label),
                  {{"cls", std::to_string(label)}, {"txt", std::string(static_cast<std::size_t>(i % 7 * 100), 'x')}});
    shard.close();
  }
  std::ofstream(folder / "s45-empty.tar", std::ios::binary) << std::string(1'024, '\0');
  return folder.path();
}

struct run_options {
  std::uint64_t seed = 7, epochs = 3, epoch_batches = 0;
  millrace::world world{};
  std::size_t lanes = 0;
  int threads = 2;
  std::string resume{};
  std::size_t window = 60;
  std::size_t global_batch = 24;
  bool drop_last = true, allow_empty = false;
  bool copying = false;
  bool keys = true;
  std::uint64_t max_batches = ~std::uint64_t{0};
  std::shared_ptr<const millrace::tuning_rule> tuning{};
  std::shared_ptr<millrace::row_provider> storage_of_rows{};
  millrace::shards_options source{};   // but for its seed and fields
};

using rows = std::vector<std::pair<std::int32_t, double>>;

/// The output of one rank, or of all together: per batch the rows, and the resume point after it.
struct delivered {
  std::vector<rows> batches;
  std::vector<std::string> positions;
  std::vector<std::uint64_t> steps, epochs, global_sizes;
  millrace::run_stats stats{};

  rows all_rows() const {
    rows all;
    for (const auto& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
    return all;
  }
};

template <class Source>
auto flow_of(Source source, const run_options& o) {
  return std::move(source) | millrace::shuffle({.window = o.window}) | millrace::map(prepare) |
         millrace::batch<&example::label, &example::draw>(
             {.size = o.global_batch / o.world.size, .drop_last = o.drop_last, .allow_empty = o.allow_empty,
              .keys = o.keys}) |
         millrace::to_device({.device = o.copying ? copying_device() : millrace::host_device()});
}
inline auto flow(const std::string& pattern, const run_options& o) {
  millrace::shards_options source = o.source;
  source.seed = o.seed;
  source.fields = {"cls"};
  return flow_of(millrace::shards(pattern, source), o);
}

inline delivered run(const std::string& pattern, const run_options& o) {
  auto options = quiet(o.threads, o.epochs);
  options.epoch_batches = o.epoch_batches;
  options.world = o.world;
  options.lanes = o.lanes;
  options.resume = o.resume;
  options.tuning = o.tuning;
  options.rows = o.storage_of_rows;
  millrace::session session{flow(pattern, o), options};
  delivered d;
  for (auto& b : session) {
    auto [labels, draw] = b.columns();
    auto& rows = d.batches.emplace_back();
    for (std::size_t i = 0; i < b.size(); ++i) rows.emplace_back(labels[i], draw[i]);
    if (o.keys) {
      CHECK(b.keys().size() == b.size());
      for (std::size_t i = 0; i < b.size(); ++i) REQUIRE(b.keys()[i] == "k" + std::to_string(labels[i]));
    }
    d.positions.push_back(millrace::to_text(b.position()));
    d.steps.push_back(b.step());
    d.epochs.push_back(b.epoch());
    d.global_sizes.push_back(b.global_size());
    CHECK(session.stats().digest == b.position().digest);
    if (d.batches.size() == o.max_batches) break;
  }
  d.stats = session.stats();
  return d;
}

/// The batches of all ranks together, in the order of positions, and their resume points with the digests summed.
inline delivered run_all_ranks(const std::string& pattern, run_options o, std::size_t world_size) {
  delivered all;
  std::vector<millrace::position> sums;
  for (std::size_t r = 0; r < world_size; ++r) {
    o.world = {.rank = r, .size = world_size};
    const delivered d = run(pattern, o);
    if (r == 0) {
      all = d;
      all.batches.clear();
      for (const std::uint64_t size : d.global_sizes) all.batches.emplace_back(size);
    }
    REQUIRE(d.batches.size() == all.batches.size());
    CHECK(d.steps == all.steps);
    CHECK(d.epochs == all.epochs);
    CHECK(d.global_sizes == all.global_sizes);
    for (std::size_t b = 0; b < d.batches.size(); ++b) {
      const std::size_t own = (all.batches[b].size() + world_size - 1 - r) / world_size;
      REQUIRE(d.batches[b].size() == own);
      for (std::size_t i = 0; i < own; ++i) all.batches[b][i * world_size + r] = d.batches[b][i];
      const millrace::position p = millrace::parse_position(d.positions[b]);
      if (r == 0) sums.push_back(p);
      else sums[b].digest += p.digest;
    }
  }
  for (std::size_t b = 0; b < sums.size(); ++b) all.positions[b] = millrace::to_text(sums[b]);
  return all;
}

}  // namespace indexed_runs
