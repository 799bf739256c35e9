// Shared by the tests of mixed rows: runs over shards of labels whose rows are mixed, and a slow loop that mixes the
// rows of a run without mixing.
#pragma once

#include "../image/slow_mixes.hpp"
#include "damaged_runs.hpp"

#include <millrace/mix_rows.hpp>

#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace mixed_runs {

using damaged_runs::every;
using damaged_runs::global_batch;
using damaged_runs::lanes;
using damaged_runs::message_of;
using damaged_runs::write_labels;

inline constexpr std::size_t height = 5, width = 7;

struct example {
  millrace::tensor<std::uint8_t, 3> pixels;   // [height, width, 3]
  std::int32_t label;
};

inline auto prepare_but(const std::set<int>& bad) {
  return [bad](const millrace::record& r, millrace::rng& random) {
    const auto label = r["cls"].as<std::int32_t>();
    if (bad.contains(label)) throw millrace::data_error("label " + std::to_string(label) + " is bad", "Look at it");
    example e{millrace::tensor<std::uint8_t, 3>({height, width, 3}), label};
    for (auto& v : e.pixels.span()) v = static_cast<std::uint8_t>(random.below(256));
    return e;
  };
}

/// One row as the trainer sees it.
struct row_trace {
  std::vector<std::uint8_t> pixels{};
  std::int32_t label_a = 0, label_b = 0;
  float lambda = 1;
  bool valid = true, replaced = false;
  friend bool operator==(const row_trace&, const row_trace&) = default;
};
using batch_trace = std::vector<row_trace>;

struct run_trace {
  std::vector<batch_trace> batches{};
  std::vector<std::string> positions{};
  std::vector<std::uint64_t> epochs{};
};

struct settings {
  millrace::mix_rows_options mix{.mixup_alpha = 0.8, .cutmix_alpha = 1.0};
  std::set<int> bad{};
  std::optional<millrace::damage> policy{};
  int threads = 2;
  millrace::world world{};
  std::string resume{};
  bool drop_last = true, pad_last = false, copying = false;
  bool finishes = false;   // the trainer mixes the deferred rows
  std::uint64_t epochs = 2, epoch_batches = 0;
  std::uint64_t seed = 5;
  std::uint64_t max_batches = ~std::uint64_t{0};
};

inline auto batches_of(const std::string& shards, const settings& s) {
  return millrace::shards(shards, {.seed = s.seed}) | millrace::shuffle({.window = 100}) |
         millrace::map(prepare_but(s.bad)) |
         millrace::batch<&example::pixels, &example::label>({.size = global_batch / s.world.size,
                                                             .drop_last = s.drop_last,
                                                             .pad_last = s.pad_last,
                                                             .allow_empty = !s.pad_last}) |
         millrace::to_device({.device = s.copying ? copying_device() : millrace::host_device()});
}

inline millrace::session_options options_of(const settings& s) {
  auto o = quiet(s.threads, s.epochs);
  o.world = s.world;
  o.resume = s.resume;
  o.lanes = lanes;
  o.epoch_batches = s.epoch_batches;
  if (s.policy) o.on_damage = {.policy = *s.policy, .at_most_share = 1};
  return o;
}

/// Runs a flow of batches to its end, or for some batches.
template <class Flow>
run_trace run_rows(Flow flow, const settings& s) {
  millrace::session session{std::move(flow), options_of(s)};
  run_trace trace;
  for (auto& b : session) {
    if constexpr (requires { b.row_mixes(); })
      if (s.finishes) millrace::mix_rows(b.template get<&example::pixels>(), b.row_mixes());
    const auto pixels = b.to_host(b.template get<&example::pixels>());
    const auto labels = b.to_host(b.template get<&example::label>());
    const std::size_t row = height * width * 3;
    auto& batch = trace.batches.emplace_back(b.size());
    for (std::size_t i = 0; i < b.size(); ++i) {
      batch[i].pixels.assign(pixels.data() + i * row, pixels.data() + (i + 1) * row);
      batch[i].label_a = batch[i].label_b = labels.data()[i];
    }
    if constexpr (requires { b.lambda(); }) {
      const auto label_b = b.to_host(b.label_b());
      const auto lambda = b.to_host(b.lambda());
      for (std::size_t i = 0; i < b.size(); ++i) {
        batch[i].label_b = label_b.data()[i];
        batch[i].lambda = lambda.data()[i];
      }
    }
    if (s.policy || s.pad_last) {
      const auto valid = b.to_host(b.valid()), replaced = b.to_host(b.replaced());
      for (std::size_t i = 0; i < b.size(); ++i) {
        batch[i].valid = valid.data()[i] == 1;
        batch[i].replaced = replaced.data()[i] == 1;
      }
    }
    trace.positions.push_back(millrace::to_text(b.position()));
    trace.epochs.push_back(b.epoch());
    if (trace.batches.size() == s.max_batches) break;
  }
  return trace;
}

inline run_trace run_mixed(const std::string& shards, const settings& s) {
  return run_rows(batches_of(shards, s) | millrace::mix_rows<&example::pixels, &example::label>(s.mix), s);
}
inline run_trace run_plain(const std::string& shards, const settings& s) { return run_rows(batches_of(shards, s), s); }

/// The batches of all ranks, row by row in the order of positions, with digests summed.
inline run_trace run_on_ranks(const std::string& shards, settings s, std::size_t ranks) {
  run_trace all;
  std::vector<millrace::position> sums;
  for (std::size_t r = 0; r < ranks; ++r) {
    s.world = {.rank = r, .size = ranks};
    const run_trace one = run_mixed(shards, s);
    all.batches.resize(one.batches.size());
    for (std::size_t b = 0; b < one.batches.size(); ++b) {
      const millrace::position p = millrace::parse_position(one.positions[b]);
      if (r == 0) sums.push_back(p);
      else sums[b].digest += p.digest;
      for (std::size_t i = 0; i < one.batches[b].size(); ++i) {
        const std::size_t at = i * ranks + r;
        if (all.batches[b].size() <= at) all.batches[b].resize(at + 1);
        all.batches[b][at] = one.batches[b][i];
      }
    }
    all.epochs = one.epochs;
  }
  for (const millrace::position& p : sums) all.positions.push_back(millrace::to_text(p));
  return all;
}

/// Mixes the rows of a clean run by one rank, whose samples in `bad` are damaged. `stage` is the ordinal of mix_rows
/// among the stages that draw.
inline std::vector<batch_trace> slowly_mixed(const run_trace& clean, const settings& s, std::size_t stride,
                                            std::uint64_t stage = 1) {
  const millrace::detail::pair_rule_options rule{.mixup_alpha = s.mix.mixup_alpha,
                                                 .cutmix_alpha = s.mix.cutmix_alpha,
                                                 .switch_probability = s.mix.switch_probability,
                                                 .probability = s.mix.probability,
                                                 .cutmix_minmax = s.mix.cutmix_minmax};
  std::vector<batch_trace> all = clean.batches;
  std::uint64_t in_epoch = 0;
  for (std::size_t b = 0; b < all.size(); ++b, ++in_epoch) {
    if (b > 0 && clean.epochs[b] != clean.epochs[b - 1]) in_epoch = 0;
    batch_trace& rows = all[b];
    const auto good = [&](std::size_t row) { return !s.bad.contains(clean.batches[b][row].label_a); };
    for (std::size_t p = 0; p + stride < rows.size(); ++p) {
      row_trace &first = rows[p], &second = rows[p + stride];
      if (p / stride % 2 != 0 || !good(p) || !good(p + stride)) continue;
      if (s.mix.off_epoch && clean.epochs[b] >= *s.mix.off_epoch) continue;
      millrace::rng random({.seed = s.seed, .epoch = clean.epochs[b], .sample = in_epoch * global_batch + p,
                            .stage = stage});
      const auto mix = slow_mixes::draw(rule, random, height, width);
      if (!mix.mixes) continue;
      slow_mixes::mix(mix, first.pixels, second.pixels, height, width, false);
      first.label_b = second.label_a;
      second.label_b = first.label_a;
      first.lambda = second.lambda = static_cast<float>(mix.lambda);
    }
    const batch_trace mixed = rows;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      if (good(row)) continue;
      std::size_t best = row, away = ~std::size_t{0};
      for (std::size_t other = 0; other < rows.size(); ++other) {
        const std::size_t distance = other > row ? other - row : row - other;
        if (s.policy != millrace::damage::replace || distance % lanes != 0) continue;
        if (distance >= away || !good(other)) continue;
        best = other;
        away = distance;
      }
      rows[row] = best != row ? mixed[best] : row_trace{.pixels = std::vector<std::uint8_t>(height * width * 3)};
      rows[row].valid = rows[row].replaced = best != row;
    }
    if (s.pad_last)
      while (rows.size() < global_batch)
        rows.push_back({.pixels = std::vector<std::uint8_t>(height * width * 3), .valid = false});
  }
  return all;
}

}  // namespace mixed_runs
