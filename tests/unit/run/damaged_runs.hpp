// Shared by the tests of damaged data: shards of labels with bytes, and runs over them in which some are damaged.
#pragma once

#include "indexed_runs.hpp"

#include <millrace/item/tensor/ragged.hpp>

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace damaged_runs {

using namespace indexed_runs;


inline constexpr std::size_t lanes = 12, global_batch = 48;

struct row_of {
  std::int32_t label;
  millrace::ragged<std::uint8_t> bytes;
};

/// One row as the trainer sees it.
struct row_trace {
  std::int32_t label;
  std::vector<std::uint8_t> bytes;
  bool valid, replaced;
  std::string key;
  friend bool operator==(const row_trace&, const row_trace&) = default;
};
using batch_trace = std::vector<row_trace>;

struct damaged_run {
  std::set<int> bad{};            // labels for which the map throws
  millrace::damage_options on_damage{.policy = millrace::damage::replace, .at_most_share = 1};
  int threads = 2;
  millrace::world world{};
  std::string resume{};
  millrace::key_list without{};
  std::size_t damaged_shards_at_most = 0;
  bool drop_last = true, pad_last = false, copying = false;
  std::uint64_t epochs = 2;
  std::uint64_t max_batches = ~std::uint64_t{0};
};

struct run_trace {
  std::vector<batch_trace> batches{};
  std::vector<std::string> positions{};
  std::vector<std::size_t> global_sizes{};
  millrace::run_stats stats{};
  std::string description{};
};

/// Shards whose sample i has label i and a field of i % 50 bytes.
inline std::string write_labels(const temporary_folder& folder, int count = 300) {
  millrace::shard_writer shard({.pattern = folder / "s-%d.tar", .max_samples = 70});
  for (int i = 0; i < count; ++i)
    shard.write("k" + std::to_string(i), {{"cls", std::to_string(i)},
                                          {"bin", std::string(std::size_t(i % 50), static_cast<char>(i % 251))}});
  shard.close();
  return folder.path();
}

inline auto prepare_but(const std::set<int>& bad) {
  return [bad](const millrace::record& r) {
    const auto label = r["cls"].as<std::int32_t>();
    if (bad.contains(label)) throw millrace::data_error("label " + std::to_string(label) + " is bad", "Look at it");
    const millrace::bytes field = r["bin"];
    std::vector<std::uint8_t> bytes(field.size());
    if (field.size() > 0) std::memcpy(bytes.data(), field.data(), field.size());
    return row_of{label, millrace::ragged<std::uint8_t>(std::move(bytes), {.max_length = 64, .padding = 9})};
  };
}

inline run_trace run_with(const std::string& shards, const damaged_run& o) {
  auto options = quiet(o.threads, o.epochs);
  options.world = o.world;
  options.resume = o.resume;
  options.lanes = lanes;
  options.on_damage = o.on_damage;
  const bool flags = o.on_damage.policy != millrace::damage::fail || o.pad_last;
  millrace::session session{millrace::shards(shards, {.seed = 5,
                                                              .damaged_shards_at_most = o.damaged_shards_at_most,
                                                              .without = o.without}) |
                          millrace::shuffle({.window = 100}) |
                          millrace::map(prepare_but(o.bad)) |
                          millrace::batch<&row_of::label, &row_of::bytes>(
                              {.size = global_batch / o.world.size, .drop_last = o.drop_last, .pad_last = o.pad_last,
                               .allow_empty = !o.pad_last, .keys = true}) |
                          millrace::to_device({.device = o.copying ? copying_device() : millrace::host_device()}),
                      options};
  run_trace trace;
  for (auto& b : session) {
    const auto labels = b.to_host(b.template get<&row_of::label>());
    const auto values = b.to_host(b.template get<&row_of::bytes>().values);
    const auto lengths = b.to_host(b.template get<&row_of::bytes>().lengths);
    REQUIRE(b.keys().size() == b.size());
    auto& batch = trace.batches.emplace_back();
    for (std::size_t i = 0; i < b.size(); ++i) {
      const auto* const begin = values.data() + i * values.shape()[1];
      const auto length = lengths.data()[i];
      REQUIRE(std::all_of(begin + length, begin + values.shape()[1], [](std::uint8_t v) { return v == 9; }));
      batch.push_back({labels.data()[i], {begin, begin + length}, true, false, std::string(b.keys()[i])});
    }
    if (flags) {
      const auto valid = b.to_host(b.valid()), replaced = b.to_host(b.replaced());
      for (std::size_t i = 0; i < b.size(); ++i) {
        batch[i].valid = valid.data()[i] == 1;
        batch[i].replaced = replaced.data()[i] == 1;
      }
    }
    trace.positions.push_back(millrace::to_text(b.position()));
    trace.global_sizes.push_back(b.global_size());
    if (trace.batches.size() == o.max_batches) break;
  }
  trace.stats = session.stats();
  trace.description = session.description();
  return trace;
}

/// The batches of all ranks, row by row in the order of positions, with digests summed.
inline run_trace run_on_ranks(const std::string& shards, damaged_run o, std::size_t ranks) {
  run_trace all;
  std::vector<millrace::position> sums;
  for (std::size_t r = 0; r < ranks; ++r) {
    o.world = {.rank = r, .size = ranks};
    const run_trace one = run_with(shards, o);
    all.batches.resize(one.batches.size());
    for (std::size_t b = 0; b < one.batches.size(); ++b) {
      if (r == 0) sums.push_back(millrace::parse_position(one.positions[b]));
      else sums[b].digest += millrace::parse_position(one.positions[b]).digest;
      for (std::size_t i = 0; i < one.batches[b].size(); ++i) {
        const std::size_t at = i * ranks + r;
        if (all.batches[b].size() <= at) all.batches[b].resize(at + 1);
        all.batches[b][at] = one.batches[b][i];
      }
    }
    all.global_sizes = one.global_sizes;
    all.stats.samples += one.stats.samples;
    all.stats.replaced += one.stats.replaced;
    all.stats.masked += one.stats.masked;
  }
  for (const millrace::position& p : sums) all.positions.push_back(millrace::to_text(p));
  return all;
}

inline std::set<int> every(int nth, int from = 3, int count = 300) {
  std::set<int> bad;
  for (int i = from; i < count; i += nth) bad.insert(i);
  return bad;
}

inline std::string message_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const millrace::error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace damaged_runs
