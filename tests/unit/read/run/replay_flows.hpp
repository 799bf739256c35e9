// Shared by the tests of runs without an index: a source of several parts, and the output of a run of a flow.
#pragma once

#include "../../run/quiet_sessions.hpp"

#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

/// Numbers 0 .. in parts of the given lengths; some may be empty. One may end with an error of damage.
struct numbers_in_shards {
  using item = int;
  std::vector<int> lengths;
  std::size_t damaged = ~std::size_t{0};

  struct reader {
    int at, end;
    bool damaged;
    std::optional<int> next() {
      if (at == end && damaged) throw millrace::late_data_error("the part has another checksum", {});
      return at < end ? std::optional(at++) : std::nullopt;
    }
  };
  std::size_t shards() const { return lengths.size(); }
  reader open(std::size_t shard, std::uint64_t) const {
    const int first = std::accumulate(lengths.begin(), lengths.begin() + static_cast<std::ptrdiff_t>(shard), 0);
    return {first, first + lengths[shard], shard == damaged};
  }
};

struct numbered_row {
  std::int64_t number;
  double draw;
};
inline numbered_row with_draw(int n, millrace::rng& random) { return {n, random.uniform()}; }

/// Per batch the rows and its metadata.
struct replay_trace {
  std::vector<std::vector<std::pair<std::int64_t, double>>> batches{};
  std::vector<std::string> positions{};
  std::vector<std::uint64_t> steps{}, epochs{};
};

/// Runs a flow of numbered_row to its end, or for some batches.
template <class Flow>
replay_trace run_flow(Flow flow, const millrace::session_options& options,
                      std::size_t max_batches = ~std::size_t{0}) {
  millrace::session session{std::move(flow), options};
  replay_trace t;
  for (auto& b : session) {
    auto [numbers, draw] = b.columns();
    auto& rows = t.batches.emplace_back();
    for (std::size_t i = 0; i < b.size(); ++i) rows.emplace_back(numbers.host()[i], draw.host()[i]);
    t.positions.push_back(millrace::to_text(b.position()));
    t.steps.push_back(b.step());
    t.epochs.push_back(b.epoch());
    CHECK(b.global_size() == b.size() * options.world.value_or(millrace::single_process).size);
    if (t.batches.size() == max_batches) break;
  }
  return t;
}

/// Resumes after every batch; each time the rest has to be the same as without the interruption, positions included.
template <class MakeFlow>
replay_trace check_every_cut(const MakeFlow& flow, millrace::session_options options) {
  options.threads = 0;
  const replay_trace reference = run_flow(flow(), options);
  for (const int threads : {1, 3}) {
    options.threads = threads;
    const replay_trace again = run_flow(flow(), options);
    REQUIRE(again.batches == reference.batches);
    REQUIRE(again.positions == reference.positions);
  }
  for (std::size_t left = 0; left < reference.batches.size(); left += stride(5)) {   // after the last one too
    const std::size_t cut = reference.batches.size() - left - 1;
    CAPTURE(cut);
    CAPTURE(reference.positions[cut]);
    options.threads = static_cast<int>(cut % 3);
    options.resume = reference.positions[cut];
    if (cut + 1 == reference.batches.size()) {
      CHECK_THROWS_WITH_AS(run_flow(flow(), options), doctest::Contains("the run is over"), millrace::setup_error);
      break;
    }
    const replay_trace rest = run_flow(flow(), options);
    const auto rest_of = [&](const auto& all) {
      return std::remove_cvref_t<decltype(all)>(all.begin() + static_cast<std::ptrdiff_t>(cut) + 1, all.end());
    };
    REQUIRE(rest.batches == rest_of(reference.batches));
    REQUIRE(rest.positions == rest_of(reference.positions));
    REQUIRE(rest.steps == rest_of(reference.steps));
    REQUIRE(rest.epochs == rest_of(reference.epochs));
  }
  return reference;
}

/// The complete run in pieces of one to five batches, each resumed from the end of the previous one.
template <class MakeFlow>
void check_chain(const MakeFlow& flow, millrace::session_options options, const replay_trace& reference) {
  replay_trace pieced;
  for (std::size_t turn = 0; pieced.batches.size() < reference.batches.size(); ++turn) {
    options.threads = static_cast<int>(turn % 4);
    const replay_trace some = run_flow(flow(), options, 1 + turn % 5);
    pieced.batches.insert(pieced.batches.end(), some.batches.begin(), some.batches.end());
    options.resume = some.positions.back();
  }
  CHECK(pieced.batches == reference.batches);
}
