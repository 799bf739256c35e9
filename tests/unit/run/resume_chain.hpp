// A run in pieces: each is restored from the resume point of the previous one, by other ranks, workers, I/O threads and
// read-ahead, and compared with the run that was never interrupted.
//
//   const settings s = usual(folder);
//   const piece reference = run_unbroken(s);
//   chain pieces(s, reference);
//   pieces.go({.world_size = 4, .threads = 2}, 7);               // seven batches by four ranks
//   pieces.go({}, pieces.left());                                // and all others by one
#pragma once

#include "../../temporary_folder.hpp"
#include "quiet_sessions.hpp"

#include <millrace/io/tar/write/shard_writer.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/shards.hpp>
#include <millrace/stages/batch.hpp>
#include <millrace/stages/map.hpp>
#include <millrace/stages/shuffle.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace resume_test {

namespace mr = millrace;

struct example {
  std::int32_t number;   // of the sample in the data set
  double draw;
};

using row = std::pair<std::int32_t, double>;
using rows = std::vector<row>;

inline example prepare(const mr::record& r, mr::rng& random) {
  return {r["n"].as<std::int32_t>(), random.uniform()};
}

struct data_set {
  std::string pattern{};
  std::uint64_t samples = 0;
};

inline data_set write_data(const temporary_folder& folder, const std::string& name,
                           const std::vector<std::uint64_t>& counts) {
  data_set data{.pattern = folder / (name + "-*.tar")};
  for (std::size_t shard = 0; shard < counts.size(); ++shard) {
    mr::shard_writer writer({.pattern = folder / (name + "-" + std::to_string(shard) + "-%d.tar")});
    for (std::uint64_t i = 0; i < counts[shard]; ++i, ++data.samples)
      writer.write("k" + std::to_string(data.samples), {{"n", std::to_string(data.samples)}});
    writer.close();
  }
  return data;
}

/// The settings that a resume point fixes.
struct settings {
  data_set data{};
  std::uint64_t seed = 1, epochs = 3;
  std::size_t window = 50, lanes = 48, global_batch = 24;   // window 0: not shuffled
  bool drop_last = true;
  std::uint64_t fixed_batches = 0;   // of an epoch; 0: one pass

  std::uint64_t epoch_batches() const {
    if (fixed_batches > 0) return fixed_batches;
    return (data.samples + (drop_last ? 0 : global_batch - 1)) / global_batch;
  }
  std::uint64_t batches() const { return epochs * epoch_batches(); }
  std::uint64_t epoch_rows() const {
    return fixed_batches == 0 && !drop_last ? data.samples : epoch_batches() * global_batch;
  }
  bool allows(std::size_t world_size) const {
    return global_batch % world_size == 0;
  }
};

/// The settings that may change.
struct conduct {
  std::size_t world_size = 1;
  int threads = 0;
  unsigned io_threads = 1;
  std::size_t depth = 2;
};

struct piece {
  std::vector<rows> batches{};   // of all ranks together, in order of positions
  std::string text{};            // the resume point after them
};

template <class Flow>
void run_rank(Flow flow, const mr::session_options& options, std::uint64_t most, piece& all, mr::position& end) {
  mr::session session{std::move(flow), options};
  const mr::world mine = options.world.value();
  for (std::size_t b = 0; b < most; ++b) {
    const auto batch = session.next();
    REQUIRE(batch);
    if (all.batches.size() <= b) all.batches.emplace_back();
    rows& together = all.batches[b];
    const auto [numbers, draw] = batch.columns();
    for (std::size_t i = 0; i < batch.size(); ++i) {   // of a short last batch, ranks may have less than others
      const std::size_t at = i * mine.size + mine.rank;
      together.resize(std::max(together.size(), at + 1), {-1, 0});
      together[at] = {numbers.host()[i], draw.host()[i]};
    }
    if (b + 1 == most) end = batch.position();
  }
}

/// The next `most` batches after `text`, by all ranks.
inline piece run(const settings& s, const conduct& c, const std::string& text, std::uint64_t most) {
  piece all{.text = text};
  mr::position saved;
  for (std::size_t rank = 0; rank < c.world_size; ++rank) {
    mr::session_options options = quiet(c.threads, s.epochs);
    options.io_threads = c.io_threads;
    options.world = {.rank = rank, .size = c.world_size};
    options.resume = text;
    options.lanes = s.lanes;
    options.epoch_batches = s.fixed_batches;
    const auto source = mr::shards(s.data.pattern, {.seed = s.seed, .fields = {"n"}});
    const auto last = mr::map(prepare);
    const auto batch = mr::batch<&example::number, &example::draw>(
        {.size = s.global_batch / c.world_size, .drop_last = s.drop_last, .allow_empty = true});
    const auto ahead = mr::prefetch({.batches = c.depth});
    mr::position reached;
    if (s.window == 0) run_rank(source | last | batch | ahead, options, most, all, reached);
    else run_rank(source | mr::shuffle({.window = s.window}) | last | batch | ahead, options, most, all, reached);
    // Each rank has the digest of its own batches, and they add up.
    const std::uint64_t digest = reached.digest + (rank > 0 ? saved.digest : 0);
    reached.digest = saved.digest = digest;
    if (rank > 0) REQUIRE(reached == saved);
    saved = reached;
  }
  if (most > 0) all.text = mr::to_text(saved);
  return all;
}

/// Every epoch delivers each sample at most once, and all of them except those that fill no batch. Where
/// epochs have a fixed number of batches, complete passes follow each other.
inline piece run_unbroken(const settings& s) {
  piece reference = run(s, {}, "", s.batches());
  rows all;
  for (const rows& batch : reference.batches) all.insert(all.end(), batch.begin(), batch.end());
  REQUIRE(all.size() == s.epochs * s.epoch_rows());
  const std::size_t pass = static_cast<std::size_t>(s.fixed_batches > 0 ? s.data.samples : s.epoch_rows());
  for (std::size_t begin = 0; begin < all.size(); begin += pass) {
    const std::size_t end = std::min(all.size(), begin + pass);
    std::set<std::int32_t> labels;
    for (std::size_t i = begin; i < end; ++i) labels.insert(all[i].first);
    REQUIRE(labels.size() == end - begin);
    REQUIRE(*labels.begin() >= 0);
    REQUIRE(static_cast<std::uint64_t>(*labels.rbegin()) < s.data.samples);
  }
  return reference;
}

/// A run in pieces, compared with the unbroken one at each step.
class chain {
 public:
  chain(const settings& s, const piece& reference) : settings_(s), reference_(reference) {}

  std::uint64_t done() const { return done_; }
  std::uint64_t left() const { return settings_.batches() - done_; }
  const std::string& text() const { return text_; }

  void go(const conduct& c, std::uint64_t most) {
    INFO("batch ", done_, ", ", most, " batches by ", c.world_size, " ranks, ", c.threads, " workers, after ", text_);
    const piece next = run(settings_, c, text_, most);
    REQUIRE(next.batches.size() == most);
    REQUIRE(std::equal(next.batches.begin(), next.batches.end(),
                       reference_.batches.begin() + static_cast<std::ptrdiff_t>(done_)));
    done_ += most;
    text_ = next.text;
    if (left() == 0) REQUIRE(text_ == reference_.text);   // the digest of all, too
  }

 private:
  const settings& settings_;
  const piece& reference_;
  std::uint64_t done_ = 0;
  std::string text_{};
};

inline constexpr std::size_t world_sizes[] = {1, 2, 3, 4, 6, 8, 12};

/// A middle-sized data set of ten batches and a rest, for the named cases.
inline settings usual(const temporary_folder& folder) {
  return {.data = write_data(folder, "usual", {90, 0, 7, 100, 50})};
}

}  // namespace resume_test
