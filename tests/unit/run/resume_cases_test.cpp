// Resume, in seven cases that other loaders have got wrong.
#include "resume_chain.hpp"

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
