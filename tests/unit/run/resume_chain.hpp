// A run in pieces: each is restored from what the one before it saved, by other ranks, workers, I/O threads and
// read-ahead, and compared with the run that was never interrupted.
//
//   const settings s = usual(folder);
//   const piece whole = run_unbroken(s);
//   chain pieces(s, whole);
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
  double drawn;
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
  data_set made{.pattern = folder / (name + "-*.tar")};
  for (std::size_t shard = 0; shard < counts.size(); ++shard) {
    mr::shard_writer writer({.pattern = folder / (name + "-" + std::to_string(shard) + "-%d.tar")});
    for (std::uint64_t i = 0; i < counts[shard]; ++i, ++made.samples)
      writer.write("k" + std::to_string(made.samples), {{"n", std::to_string(made.samples)}});
    writer.close();
  }
  return made;
}

/// What a resume point holds fast.
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

/// What may change.
struct conduct {
  std::size_t world_size = 1;
  int threads = 0;
  unsigned io_threads = 1;
  std::size_t depth = 2;
};

struct piece {
  std::vector<rows> batches{};   // of all ranks together, in order of positions
  std::string text{};            // the resume point behind them
};

template <class Flow>
void run_rank(Flow flow, const mr::session_options& options, std::uint64_t most, piece& all, mr::position& behind) {
  mr::session session{std::move(flow), options};
  const mr::world mine = options.world.value();
  for (std::size_t b = 0; b < most; ++b) {
    const auto batch = session.next();
    REQUIRE(batch);
    if (all.batches.size() <= b) all.batches.emplace_back();
    rows& together = all.batches[b];
    const auto [numbers, drawn] = batch.columns();
    for (std::size_t i = 0; i < batch.size(); ++i) {   // of a short last batch, ranks may have less than others
      const std::size_t at = i * mine.size + mine.rank;
      together.resize(std::max(together.size(), at + 1), {-1, 0});
      together[at] = {numbers.host()[i], drawn.host()[i]};
    }
    if (b + 1 == most) behind = batch.position();
  }
}

/// The next `most` batches behind `text`, by all ranks.
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
    const auto batch = mr::batch<&example::number, &example::drawn>(
        {.size = s.global_batch / c.world_size, .drop_last = s.drop_last, .allow_empty = true});
    const auto ahead = mr::prefetch({.batches = c.depth});
    mr::position behind;
    if (s.window == 0) run_rank(source | last | batch | ahead, options, most, all, behind);
    else run_rank(source | mr::shuffle({.window = s.window}) | last | batch | ahead, options, most, all, behind);
    // Each rank has the digest of what it delivered itself, and they add up.
    const std::uint64_t digest = behind.digest + (rank > 0 ? saved.digest : 0);
    behind.digest = saved.digest = digest;
    if (rank > 0) REQUIRE(behind == saved);
    saved = behind;
  }
  if (most > 0) all.text = mr::to_text(saved);
  return all;
}

/// Every epoch delivers each sample at most once, and as many as there are but for those that fill no batch. Where
/// epochs are of so many batches, whole passes follow each other.
inline piece run_unbroken(const settings& s) {
  piece whole = run(s, {}, "", s.batches());
  rows all;
  for (const rows& batch : whole.batches) all.insert(all.end(), batch.begin(), batch.end());
  REQUIRE(all.size() == s.epochs * s.epoch_rows());
  const std::size_t pass = static_cast<std::size_t>(s.fixed_batches > 0 ? s.data.samples : s.epoch_rows());
  for (std::size_t begin = 0; begin < all.size(); begin += pass) {
    const std::size_t end = std::min(all.size(), begin + pass);
    std::set<std::int32_t> seen;
    for (std::size_t i = begin; i < end; ++i) seen.insert(all[i].first);
    REQUIRE(seen.size() == end - begin);
    REQUIRE(*seen.begin() >= 0);
    REQUIRE(static_cast<std::uint64_t>(*seen.rbegin()) < s.data.samples);
  }
  return whole;
}

/// A run in pieces, checked against the unbroken one as it goes.
class chain {
 public:
  chain(const settings& s, const piece& whole) : settings_(s), whole_(whole) {}

  std::uint64_t done() const { return done_; }
  std::uint64_t left() const { return settings_.batches() - done_; }
  const std::string& text() const { return text_; }

  void go(const conduct& c, std::uint64_t most) {
    INFO("batch ", done_, ", ", most, " batches by ", c.world_size, " ranks, ", c.threads, " workers, behind ", text_);
    const piece next = run(settings_, c, text_, most);
    REQUIRE(next.batches.size() == most);
    REQUIRE(std::equal(next.batches.begin(), next.batches.end(),
                       whole_.batches.begin() + static_cast<std::ptrdiff_t>(done_)));
    done_ += most;
    text_ = next.text;
    if (left() == 0) REQUIRE(text_ == whole_.text);   // the digest of all, too
  }

 private:
  const settings& settings_;
  const piece& whole_;
  std::uint64_t done_ = 0;
  std::string text_{};
};

inline constexpr std::size_t world_sizes[] = {1, 2, 3, 4, 6, 8, 12};

/// A middle-sized data set of ten batches and a rest, for the named cases.
inline settings usual(const temporary_folder& folder) {
  return {.data = write_data(folder, "usual", {90, 0, 7, 100, 50})};
}

}  // namespace resume_test
