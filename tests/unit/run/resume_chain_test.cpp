// Resume, in seven cases that other loaders have got wrong.
#include "resume_chain.hpp"

#include <millrace/base/clock.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>

using namespace resume_test;

TEST_CASE("saved, resumed and saved again within one epoch: the second save counts from the epoch's start") {
  const temporary_folder folder;
  const settings s = usual(folder);
  const piece reference = run_unbroken(s);
  for (std::uint64_t first = 1; first < 9; ++first)
    for (std::uint64_t second = 1; first + second < 10; ++second) {
      chain pieces(s, reference);
      pieces.go({}, first);
      pieces.go({.world_size = 2, .threads = 1}, second);
      REQUIRE(mr::parse_position(pieces.text()).next_position == (first + second) * s.global_batch);
      pieces.go({.threads = 2}, pieces.left());
    }
}

TEST_CASE("saved right after a resume, before any delivery: the same place") {
  const temporary_folder folder;
  const settings s = usual(folder);
  const piece reference = run_unbroken(s);
  for (std::uint64_t cut = 1; cut < 12; ++cut) {
    chain pieces(s, reference);
    pieces.go({}, cut);
    const std::string text = pieces.text();
    for (int again = 0; again < 3; ++again) pieces.go({.world_size = 2, .threads = 3, .depth = 4}, 0);
    REQUIRE(pieces.text() == text);
    pieces.go({}, pieces.left());
  }
}

TEST_CASE("saved exactly at the end of an epoch: the next epoch begins, complete, and nothing of this one is "
          "repeated") {
  const temporary_folder folder;
  for (const bool drop_last : {true, false}) {
    settings s = usual(folder);
    s.drop_last = drop_last;
    const piece reference = run_unbroken(s);
    for (const std::uint64_t epoch : {1, 2}) {
      chain pieces(s, reference);
      pieces.go({.threads = 1}, epoch * s.epoch_batches());
      const mr::position at = mr::parse_position(pieces.text());
      CHECK(at.epoch == epoch);
      CHECK(at.next_position == 0);
      pieces.go({.threads = 2}, pieces.left());
      CHECK(mr::parse_position(pieces.text()).epoch == s.epochs);
    }
  }
}

TEST_CASE("the epoch is in the resume point: it is followed by that epoch's order, not the first one's") {
  const temporary_folder folder;
  const settings s = usual(folder);
  const piece reference = run_unbroken(s);
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    const std::uint64_t cut = epoch * s.epoch_batches() + 4;
    const piece rest = run(s, {.threads = 2}, run(s, {}, "", cut).text, 6);
    for (std::uint64_t b = 0; b < 6; ++b)
      for (std::uint64_t other = 0; other < 3; ++other)
        CHECK((rest.batches[b] == reference.batches[other * s.epoch_batches() + 4 + b]) == (other == epoch));
  }
}

TEST_CASE("the epochs after the resumed one are complete") {
  const temporary_folder folder;
  settings s = usual(folder);
  s.epochs = 5;
  const piece reference = run_unbroken(s);
  for (const std::uint64_t cut : {1, 5, 9, 10, 23}) {
    chain pieces(s, reference);
    pieces.go({}, cut);
    // To the very end of the session, not only to the expected one.
    mr::session_options options = quiet(1, s.epochs);
    options.resume = pieces.text();
    mr::session session{mr::shards(s.data.pattern, {.seed = s.seed, .fields = {"n"}}) |
                            mr::shuffle({.window = s.window}) | mr::map(prepare) |
                            mr::batch<&example::number, &example::draw>({.size = s.global_batch}),
                        options};
    std::vector<std::uint64_t> batches(s.epochs);
    for (const auto& b : session) ++batches[static_cast<std::size_t>(b.epoch())];
    for (std::uint64_t epoch = 0; epoch < s.epochs; ++epoch) {
      const std::uint64_t first = epoch * s.epoch_batches(), end = first + s.epoch_batches();
      CHECK(batches[epoch] == end - std::clamp(cut, first, end));
    }
  }
}

TEST_CASE("the buffer of a shuffle of any window is not lost: the rest of the epoch is delivered completely") {
  const temporary_folder folder;
  for (const std::size_t window : {2U, 100U, 247U, 100'000U}) {
    settings s = usual(folder);
    s.window = window;
    s.epochs = 1;
    s.drop_last = false;
    for (const std::uint64_t cut : {1, 3, 8, 10}) {
      const piece before = run(s, {.threads = 2}, "", cut);
      const piece after = run(s, {.threads = 1, .depth = 4}, before.text, s.batches() - cut);
      std::multiset<std::int32_t> labels;
      for (const piece* half : {&before, &after})
        for (const rows& batch : half->batches)
          for (const row& r : batch) labels.insert(r.first);
      REQUIRE(labels.size() == 247);
      REQUIRE(std::set<std::int32_t>(labels.begin(), labels.end()).size() == 247);
    }
  }
}

TEST_CASE("a resume point counts samples of all ranks, neither batches nor those of one rank") {
  const temporary_folder folder;
  const settings s = usual(folder);
  const piece reference = run_unbroken(s);
  for (const std::size_t world_size : world_sizes) {
    chain pieces(s, reference);
    pieces.go({.world_size = world_size}, 13);
    const mr::position at = mr::parse_position(pieces.text());
    CHECK(at.epoch == 1);
    CHECK(at.next_position == 3 * 24);
    CHECK(at.global_batch == 24);
    pieces.go({.world_size = world_size == 12 ? 1U : 12U}, pieces.left());
  }
}

// Saved here, restored there: the batches equal those of an unbroken run, whatever else changes between the two.
// MILLRACE_PAIRS sets the number of random (save, restore) pairs, MILLRACE_SETTINGS the number of settings with a stop
// after every batch, MILLRACE_FIRST_SEED the first seed, MILLRACE_DIGEST_SEEDS the number of orders to check in full.
namespace {

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// Data sets of few and many shards, some of them empty, and of sizes that fill batches or do not.
std::vector<data_set> write_data_sets(const temporary_folder& folder, std::size_t count) {
  std::vector<data_set> all;
  for (std::size_t k = 0; k < count; ++k) {
    mr::rng random({.seed = 77, .sample = k});
    std::vector<std::uint64_t> counts(1 + random.below(k % 5 == 0 ? 40 : 6));
    for (auto& c : counts) c = random.chance(0.1) ? 0 : 1 + random.below(random.chance(0.5) ? 4 : 60);
    counts[random.below(counts.size())] += 24 + random.below(30);
    if (k % 3 == 0)   // even: the last batch is never short
      counts.front() += 24 - std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}) % 24;
    all.push_back(write_data(folder, "set" + std::to_string(k), counts));
  }
  return all;
}

template <std::size_t N>
std::size_t one_of(mr::rng& random, const std::size_t (&choices)[N]) {
  return choices[random.below(N)];
}

settings draw_settings(mr::rng& random, const std::vector<data_set>& data) {
  settings s{.data = data[random.below(data.size())], .seed = random.below(1'000), .epochs = 1 + random.below(4)};
  s.window = random.chance(0.15) ? 0 : one_of(random, {1, 7, 48, 60, 300, 5'000, 1'000'000});
  s.lanes = one_of(random, {0, 0, 0, 1, 6, 12, 48, 96});
  s.global_batch = one_of(random, {1, 4, 12, 24, 24, 24, 5});
  s.drop_last = random.chance(0.5);
  s.fixed_batches = random.chance(0.25) ? 1 + random.below(40) : 0;
  return s;
}

conduct draw_conduct(mr::rng& random, const settings& s) {
  conduct c{.threads = static_cast<int>(random.below(4)), .io_threads = 1 + static_cast<unsigned>(random.below(3)),
            .depth = 1 + random.below(4)};
  do c.world_size = one_of(random, world_sizes);
  while (!s.allows(c.world_size));
  return c;
}

}  // namespace

TEST_CASE("chains of random cuts, over random settings: nothing is repeated, lost or changed") {
  const std::uint64_t goal = number_from("MILLRACE_PAIRS", 300), first_seed = number_from("MILLRACE_FIRST_SEED", 1);
  const temporary_folder folder;
  const auto data = write_data_sets(folder, 12);
  std::uint64_t pairs = 0, runs = 0, processes = 0;
  const std::int64_t start_ns = mr::detail::read_clock_ns(CLOCK_MONOTONIC);
  for (std::uint64_t seed = first_seed; pairs < goal; ++seed, ++runs) {
    CAPTURE(seed);
    mr::rng random({.seed = seed});
    const settings s = draw_settings(random, data);
    const piece reference = run_unbroken(s);
    // Some with a cut after each batch, some in about six pieces, five resumes.
    const std::uint64_t longest = random.chance(0.3) ? 1 : 1 + s.batches() / 3;
    chain pieces(s, reference);
    for (std::uint64_t link = 0; pieces.left() > 0 && link < 30; ++link) {
      const conduct c = draw_conduct(random, s);
      const std::uint64_t most = random.chance(0.05) ? 0 : 1 + random.below(longest);   // 0: stopped before it began
      pairs += !pieces.text().empty();
      processes += c.world_size;
      pieces.go(c, std::min(most, pieces.left()));
    }
  }
  if (std::getenv("MILLRACE_PAIRS")) {
    const double seconds = static_cast<double>(mr::detail::read_clock_ns(CLOCK_MONOTONIC) - start_ns) * 1e-9;
    std::printf("result: resume pairs=%llu runs=%llu sessions=%llu seconds=%.1f pairs_per_second=%.0f\n",
                static_cast<unsigned long long>(pairs), static_cast<unsigned long long>(runs),
                static_cast<unsigned long long>(processes), seconds, static_cast<double>(pairs) / seconds);
  }
}

TEST_CASE("one digest for each of five seeds, whatever the workers and the ranks: global batch 192") {
  const temporary_folder folder;
  settings s{.data = write_data(folder, "grid", {300, 0, 1, 411, 60}), .epochs = 2, .window = 200, .global_batch = 192};
  const std::uint64_t seeds = number_from("MILLRACE_DIGEST_SEEDS", 5);
  std::set<std::string> texts;
  for (s.seed = 1; s.seed <= seeds; ++s.seed) {
    const piece reference = run_unbroken(s);
    texts.insert(reference.text);
    for (const int threads : {0, 1, 2, 3, 4, 8})
      for (const std::size_t world_size : world_sizes) {
        CAPTURE(threads);
        CAPTURE(world_size);
        const piece all = run(s, {.world_size = world_size, .threads = threads}, "", s.batches());
        REQUIRE(all.batches == reference.batches);
        REQUIRE(all.text == reference.text);   // the summed digest is in it
      }
  }
  CHECK(texts.size() == seeds);
}

TEST_CASE("after every batch of three epochs, over random settings: the rest is the same as without the interruption") {
  const std::uint64_t goal = number_from("MILLRACE_SETTINGS", 2), first_seed = number_from("MILLRACE_FIRST_SEED", 1);
  const temporary_folder folder;
  const auto data = write_data_sets(folder, 12);
  std::uint64_t tested = 0, pairs = 0;
  for (std::uint64_t seed = first_seed; tested < goal; ++seed) {
    CAPTURE(seed);
    mr::rng random({.seed = seed, .stage = 1});
    settings s = draw_settings(random, data);
    s.epochs = 3;
    if (s.batches() < 12 || s.batches() > 120) continue;
    ++tested;
    const piece reference = run_unbroken(s);
    chain walk(s, reference);
    while (walk.left() > 1) {
      walk.go(draw_conduct(random, s), 1);
      chain rest = walk;
      rest.go(draw_conduct(random, s), rest.left());
      pairs += 2;
    }
  }
  if (std::getenv("MILLRACE_SETTINGS"))
    std::printf("result: every_batch settings=%llu pairs=%llu\n", static_cast<unsigned long long>(tested),
                static_cast<unsigned long long>(pairs));
}

TEST_CASE("every number of ranks continues where every other one stopped, at ten cuts") {
  const temporary_folder folder;
  settings s = usual(folder);
  s.epochs = 6;
  const piece reference = run_unbroken(s);
  // A walk through all ordered pairs, each one once (de Bruijn), begun at ten places of it.
  std::vector<std::size_t> walk;
  for (std::size_t i = 0; i < std::size(world_sizes); ++i) {
    walk.push_back(world_sizes[i]);
    for (std::size_t j = i + 1; j < std::size(world_sizes); ++j)
      walk.insert(walk.end(), {world_sizes[i], world_sizes[j]});
  }
  std::set<std::array<std::size_t, 3>> links;
  for (std::size_t begin = 0; begin < 10; begin += stride(5)) {
    chain pieces(s, reference);
    std::size_t before = 0;
    for (std::size_t link = 0; link <= walk.size(); ++link) {
      const std::size_t world_size = walk[(5 * begin + link) % walk.size()];
      if (link > 0) links.insert({before, world_size, pieces.done()});
      pieces.go({.world_size = world_size, .threads = link % 4 == 3 ? 2 : 0}, 1);
      before = world_size;
    }
  }
  CHECK(links.size() == 490 / stride(5));
}
