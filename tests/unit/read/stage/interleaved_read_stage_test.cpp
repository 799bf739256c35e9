// Lanes of a source without an index, on one rank and on several: passes are exact within each rank, and a resume point
// is valid for one number of ranks.
#include "lane_flows.hpp"

#include <millrace/stages/expand.hpp>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <span>

namespace mr = millrace;
using namespace lane_flows;

namespace {

/// Counts how often a part is opened.
struct counting : numbers_in_shards {
  static constexpr bool same_every_pass = true;
  std::shared_ptr<std::atomic<int>> opened = std::make_shared<std::atomic<int>>(0);
  reader open(std::size_t shard, std::uint64_t pass) const {
    ++*opened;
    return numbers_in_shards::open(shard, pass);
  }
};

template <class Of>
rows joined(const Of& batches) {
  rows all;
  for (const auto& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  return all;
}
template <class Range>
std::set<std::int64_t> numbers_of(const Range& range) {
  std::set<std::int64_t> numbers;
  for (const auto& [number, draw] : range) numbers.insert(number);
  return numbers;
}

}  // namespace

TEST_CASE("order and draws are those of the lanes, for every number of workers, I/O threads and ranks") {
  for (const std::size_t window : {1, 60, 600}) {
    for (const std::size_t ranks : worlds) {
      CAPTURE(window);
      CAPTURE(ranks);
      auto options = in_epochs(static_cast<int>(ranks % 5), 3, 10);
      options.io_threads = 1 + static_cast<unsigned>(ranks % 4);
      CHECK(run_all_ranks(many_shards, options, ranks, window).first == reference(ranks, window, 30));
    }
    const auto expected = reference(1, window, 30);
    for (const int threads : {0, 1, 2, 4})
      for (const std::size_t read_ahead : {std::size_t{1}, std::size_t{400}, std::size_t{0}}) {
        auto options = in_epochs(threads, 3, 10);
        options.read_ahead_bytes = read_ahead;
        CHECK(run_all_ranks(many_shards, options, 1, window).first == expected);
      }
  }
}

TEST_CASE("unless lanes are set, each rank has one, which is shuffled with its share of the window") {
  for (const std::size_t window : {1, 60, 600})
    for (const std::size_t ranks : {1U, 2U, 3U, 8U, 24U}) {
      CAPTURE(window);
      CAPTURE(ranks);
      auto options = in_epochs(static_cast<int>(ranks % 3), 3, 10);
      options.lanes = 0;
      const auto [batches, text] = run_all_ranks(many_shards, options, ranks, window);
      CHECK(batches == reference(ranks, window, 30, many_shards, ranks));
      CHECK(text.find(" lanes=" + std::to_string(ranks) + " ") != std::string::npos);
      options.resume = run_all_ranks(many_shards, options, ranks, window, 17).second;
      const auto rest = run_all_ranks(many_shards, options, ranks, window).first;
      CHECK(rest == std::vector(batches.begin() + 17, batches.end()));
    }
}

TEST_CASE("a resume point of version 4 has 48 lanes unless others are set, as at its time") {
  auto options = in_epochs(1, 3, 10);   // of 48 lanes
  const auto [batches, text] = run_all_ranks(many_shards, options, 2, 24);   // a sample for each lane, so not permuted
  mr::position p = mr::parse_position(run_all_ranks(many_shards, options, 2, 24, 12).second);
  CHECK(p.lanes == 24);
  p.version = mr::position::older_replay_version;
  options.resume = mr::to_text(p);
  options.lanes = 0;
  const auto [rest, end] = run_all_ranks(many_shards, options, 2, 24);
  CHECK(rest == std::vector(batches.begin() + 12, batches.end()));
  CHECK(mr::parse_position(end).version == mr::position::older_replay_version);
  auto by_passes = in_epochs(1, 3, 0);   // a window of all samples was not a permutation
  by_passes.lanes = 0;
  p = mr::parse_position(run_flow(flow(many_shards, 1, 1'000), by_passes, 2).positions.back());
  p.version = mr::position::older_replay_version;
  by_passes.resume = mr::to_text(p);
  const mr::session older{flow(many_shards, 1, 1'000), by_passes};
  CHECK(older.description().find("the first batch waits") == std::string::npos);
}

TEST_CASE("the limits of a window are reported at the start") {
  auto options = in_epochs(1, 1, 10);
  options.lanes = 0;
  const auto text = [&](std::size_t window) {
    return mr::session{flow(many_shards, 1, window), options}.description();
  };
  CHECK(text(60).find("; the first batch waits for 60 samples (the shuffle window), or for the end of the pass") !=
        std::string::npos);
  CHECK(text(60).find("lane") == std::string::npos);
  CHECK(text(60).find("together") == std::string::npos);
  options.lanes = 24;
  CHECK(text(600).find("\nmillrace: each lane is shuffled separately, with a window of 25 samples, so that no window "
                       "shuffles all samples together. Omit session_options::lanes to shuffle all samples together") !=
        std::string::npos);
  CHECK(text(600).find("hardly moves") == std::string::npos);
  CHECK(text(47).find("\nmillrace: the shuffle hardly moves samples: got a window of 47 for 24 lanes, expected at "
                      "least 2 samples per lane. Omit session_options::lanes, or use a larger shuffle window") !=
        std::string::npos);
  options.lanes = 0;
  options.world = {.rank = 0, .size = 2};
  CHECK(text(600).find("\nmillrace: each rank shuffles its own shards, with a window of 300 samples, so that no window "
                       "shuffles all samples together. Use an index to shuffle them together") != std::string::npos);
  CHECK(text(3).find("for 2 lanes, expected at least 2 samples per lane. Use a larger shuffle window, because each "
                     "rank has a share of it") != std::string::npos);   // lanes are not set here
}

TEST_CASE("one rank: every pass has every sample once, and no batch one twice unless a pass ends in it") {
  for (const std::size_t window : {1, 60, 5'000}) {
    auto options = in_epochs(2, 3, 248);   // of 12: 24 samples less than three passes
    const auto batches = run_flow(mr::from(uneven_shards, {.seed = 7}) | mr::shuffle({.window = window}) |
                                      mr::map(with_draw) |
                                      mr::batch<&numbered_row::number, &numbered_row::draw>({.size = 12}),
                                  options).batches;
    const rows all = joined(batches);
    REQUIRE(all.size() == 8'928);
    for (std::size_t pass = 0; pass < 3; ++pass) {
      const std::size_t length = std::min<std::size_t>(3'000, all.size() - 3'000 * pass);
      CHECK(numbers_of(std::span(all).subspan(3'000 * pass, length)).size() == length);
    }
    for (std::size_t b = 0; b < batches.size(); ++b)
      if (b % 250 != 249) CHECK(numbers_of(batches[b]).size() == 12);
    CHECK(std::set(all.begin(), all.end()).size() == all.size());   // each pass draws other values
  }
}

TEST_CASE("several ranks: pass k of all of them has every sample once, and their drift is bounded") {
  for (const std::size_t world_size : some(3, {4, 2, 8})) {
    constexpr std::size_t batches = 4'000;   // 32 passes
    std::vector<std::size_t> passes(world_size);
    std::map<std::int64_t, std::size_t> times;
    std::vector<std::set<std::int64_t>> numbers(200);
    std::vector<std::size_t> counts(200);
    for (std::size_t r = 0; r < world_size; ++r) {
      auto options = in_epochs(2, 1, batches);
      options.world = {.rank = r, .size = world_size};
      mr::session session{flow(uneven_shards, world_size), options};
      CHECK(session.description().find("8 lanes; the ranks may be in different passes, because") !=
            std::string::npos);
      const auto own_passes = reference_passes(uneven_shards, *options.world, 8, 60, 200);
      std::size_t in_pass = 0;
      for (auto& b : session)
        for (const std::int64_t number : b.get<&numbered_row::number>().host()) {
          for (; in_pass == own_passes[passes[r]].size(); in_pass = 0) ++passes[r];
          REQUIRE(number == own_passes[passes[r]][in_pass++].first);
          numbers[passes[r]].insert(number);
          ++counts[passes[r]];
          ++times[number];
        }
    }
    const auto [least, most] = std::minmax_element(passes.begin(), passes.end());
    for (std::size_t pass = 0; pass < *least; ++pass) {
      CHECK(counts[pass] == 3'000);
      CHECK(numbers[pass].size() == 3'000);
    }
    // A slow rank delivers its share of each pass later than the others, never another number of times.
    for (const auto& [number, count] : times) {
      CHECK(count >= *least);
      CHECK(count <= *most + 1);
    }
    MESSAGE(world_size << " ranks after " << batches * global_batch << " samples of 3,000: passes " << *least << " to "
                       << *most);
    CHECK(*most > *least);
  }
}

TEST_CASE("shards of one size, as many as the lanes or twice: the order of all ranks together equals that of one") {
  const numbers_in_shards even{std::vector<int>(24, 9)};
  const auto unbroken = run_all_ranks(even, in_epochs(1, 3, 10), 1).first;
  for (const std::size_t ranks : worlds) CHECK(run_all_ranks(even, in_epochs(1, 3, 10), ranks).first == unbroken);
}

TEST_CASE("resumed after any batch, every number of ranks continues as without the interruption") {
  for (const std::size_t world_size : worlds) {
    const auto unbroken = run_all_ranks(many_shards, in_epochs(0, 3, 10), world_size).first;
    for (std::size_t cut = 1 + world_size % 3; cut < unbroken.size(); cut += stride(11)) {
      CAPTURE(world_size);
      CAPTURE(cut);
      auto options = in_epochs(static_cast<int>(cut % 3), 3, 10);
      options.resume = run_all_ranks(many_shards, options, world_size, 60, cut).second;
      CHECK(options.resume.size() < 300);
      const auto rest = run_all_ranks(many_shards, options, world_size).first;
      REQUIRE(rest == std::vector<rows>(unbroken.begin() + static_cast<std::ptrdiff_t>(cut), unbroken.end()));
      if (world_size == 24) continue;
      CHECK_THROWS_WITH_AS(run_all_ranks(many_shards, options, 24),
                           doctest::Contains(("the rank (relevant without an index) was any of " +
                                              std::to_string(world_size) + " rank").c_str()),
                           mr::setup_error);
    }
  }
}

TEST_CASE("uneven parts, resumed anywhere in four passes, also at their boundaries, with and without a window") {
  for (const std::size_t window : {1, 60}) {
    const auto uneven = [&] { return flow(uneven_shards, 1, window); };
    auto options = in_epochs(0, 1, 500);
    const replay_trace unbroken = run_flow(uneven(), options);
    for (std::size_t cut = 0; cut < 499; cut += 3 * stride(5)) {
      for (const std::size_t at : {cut, cut / 125 * 125 + 124}) {   // 125 batches are a pass
        if (at + 1 >= 500 || (at != cut && cut % 5 != 0)) continue;
        CAPTURE(at);
        options.resume = unbroken.positions[at];
        options.threads = static_cast<int>(at % 3);
        const replay_trace rest = run_flow(uneven(), options, 12);
        REQUIRE(std::equal(rest.batches.begin(), rest.batches.end(),
                           unbroken.batches.begin() + static_cast<std::ptrdiff_t>(at) + 1));
      }
    }
  }
}

TEST_CASE("resumed again and again, with other workers each time") {
  for (const std::size_t world_size : {1, 4, 12}) {
    const auto unbroken = run_all_ranks(many_shards, in_epochs(0, 3, 10), world_size).first;
    std::vector<rows> pieced;
    auto options = in_epochs(0, 3, 10);
    for (std::size_t turn = 0; pieced.size() < unbroken.size(); ++turn) {
      options.threads = static_cast<int>(turn % 4);
      const auto [some, text] = run_all_ranks(many_shards, options, world_size, 60, 1 + turn % 5);
      pieced.insert(pieced.end(), some.begin(), some.end());
      options.resume = text;
    }
    CHECK(pieced == unbroken);
    CHECK_THROWS_WITH_AS(run_all_ranks(many_shards, options, world_size), doctest::Contains("the run is over"),
                         mr::setup_error);
  }
}

TEST_CASE("a resume point of version 2 is refused if it has several lanes, and continues if it has one") {
  const auto older = [](const std::string& text) {
    mr::position p = mr::parse_position(text);
    p.version = mr::position::oldest_replay_version;
    return mr::to_text(p);
  };
  auto options = in_epochs(1, 3, 10);
  options.resume = older(run_flow(flow(many_shards, 1), options, 5).positions.back());
  CHECK_THROWS_WITH_AS(run_flow(flow(many_shards, 1), options),
                       doctest::Contains("this release cannot continue an older resume point that has several lanes: "
                                         "got version 2 with 24 lanes"),
                       mr::setup_error);
  for (const std::uint64_t epoch_batches : {0, 10}) {
    auto one_lane = in_epochs(1, 3, epoch_batches);
    one_lane.lanes = 1;
    const replay_trace unbroken = run_flow(flow(many_shards, 1), one_lane);
    one_lane.resume = older(unbroken.positions[4]);
    CHECK(one_lane.resume.starts_with("millrace version=2 "));
    const replay_trace rest = run_flow(flow(many_shards, 1), one_lane);
    CHECK(rest.batches == decltype(rest.batches)(unbroken.batches.begin() + 5, unbroken.batches.end()));
    REQUIRE(rest.positions.size() + 5 == unbroken.positions.size());
    for (std::size_t i = 0; i < rest.positions.size(); ++i) {
      mr::position p = mr::parse_position(unbroken.positions[5 + i]);
      p.version = mr::position::older_replay_version;   // the run keeps its order
      CHECK(rest.positions[i] == mr::to_text(p));
    }
  }
}

TEST_CASE("each part of a source that is the same in every pass is counted once at most") {
  const counting source{many_shards};
  auto options = in_epochs(1, 1, 1'000);
  const auto unbroken = run_flow(flow(source, 1), options);
  options.resume = unbroken.positions[899];   // after 117 passes
  source.opened->store(0);
  options.threads = 0;   // which reads only the necessary parts
  mr::session rest{flow(source, 1), options};
  CHECK(source.opened->load() <= 26 + 4 * 24);
  CHECK(rest.description().find("counted the samples of 26 shards") != std::string::npos);
  const auto [numbers, draws] = rest.next().columns();
  CHECK(numbers.host()[0] == unbroken.batches[900][0].first);
}

TEST_CASE("an expanding flow: each rank has its own rows and its own resume points") {
  const auto expanding = [] {
    return mr::from(many_shards, {.seed = 7}) | mr::shuffle({.window = 60}) | mr::expand(copies_of{}) |
           mr::map(with_draw) | mr::batch<&numbered_row::number, &numbered_row::draw>({.size = 7});
  };
  auto options = in_epochs(0, 3, 8);
  for (const std::size_t rank : {0, 2}) {
    options.world = {.rank = rank, .size = 3};
    check_chain(expanding, options, check_every_cut(expanding, options));
  }
  options.resume = run_flow(expanding(), options, 3).positions.back();
  options.world->rank = 1;
  CHECK_THROWS_WITH_AS(run_flow(expanding(), options), doctest::Contains("was rank 2 of 3 and is rank 1 of 3"),
                       mr::setup_error);
  options.world = {.rank = 2, .size = 4};
  CHECK_THROWS_WITH_AS(run_flow(expanding(), options), doctest::Contains("was rank 2 of 3 and is rank 2 of 4"),
                       mr::setup_error);
}

TEST_CASE("a shuffle after a map, on two ranks: from the run's beginning") {
  const auto buffered = [] {
    return mr::from(numbers_in_shards{{9, 14, 3, 20}}) | mr::map(with_draw) | mr::shuffle({.window = 20}) |
           mr::batch<&numbered_row::number, &numbered_row::draw>({.size = 12});
  };
  auto options = in_epochs(0, 2, 9);
  options.world = {.rank = 1, .size = 2};
  check_chain(buffered, options, check_every_cut(buffered, options));
}

TEST_CASE("contradicting options are refused at the start, by name") {
  const auto refused = [](std::vector<int> lengths, mr::session_options options, const char* why) {
    CHECK_THROWS_WITH_AS(run_flow(flow(numbers_in_shards{std::move(lengths)}, 1), options), doctest::Contains(why),
                         mr::setup_error);
  };
  auto options = in_epochs(1, 1, 0);
  options.world = {.rank = 0, .size = 2};
  refused({50, 50}, options, "Set session_options::epoch_batches, or use shards() over plain tars");
  refused({50}, options, "got 1 shard for 2 ranks");   // epoch_batches would not help here
  refused({50}, options, "token_files() and from() of a range with random access also support any number of ranks");
  options.epoch_batches = 5;
  options.world = {.rank = 0, .size = 4};
  refused({50, 50, 50}, options, "without an index each rank reads its own shards: got 3 shards for 4 ranks, "
                                 "expected at least one for each");
  options.world = {.rank = 0, .size = 2};
  options.lanes = 3;
  refused({50, 50, 50}, options, "the 3 lanes are not divisible by 2 ranks: without an index, the number "
                                 "of lanes is the largest divisor of session_options::lanes = 3 that is at most the "
                                 "number of shards, 3");
  options.lanes = 48;
  options.world = {.rank = 2, .size = 2};
  refused({50, 50}, options, "the world is invalid: got rank 2 of 2");
  options.world = {.rank = 0, .size = 2};
  options.resume = run_flow(flow(numbers_in_shards{{50, 50}}, 2), options, 1).positions.back();
  options.lanes = 1;
  options.world = {};
  refused({50, 50}, options, "the number of lanes was 2 and is 1");
}

TEST_CASE("an error of a part is thrown at its batch, after all earlier ones") {
  struct breaking : numbers_in_shards {
    struct reader {
      numbers_in_shards::reader good;
      int left;
      std::optional<int> next() {
        if (left-- == 0) throw mr::data_error("broken", "Mend it");
        return good.next();
      }
    };
    reader open(std::size_t shard, std::uint64_t pass) const {
      return {numbers_in_shards::open(shard, pass), shard == 7 && pass == 1 ? 10 : 1'000};
    }
  };
  const auto expected = run_all_ranks(many_shards, in_epochs(0, 1, 30), 1, 1).first;
  std::size_t delivered = 0;
  for (const int threads : {0, 1, 3}) {
    mr::session session{flow(breaking{many_shards}, 1, 1), in_epochs(threads, 1, 30)};
    std::size_t batches = 0;
    const auto read = [&] {
      for (auto& b : session) {
        CHECK(b.template get<&numbered_row::number>().host()[0] == expected.at(batches)[0].first);
        ++batches;
      }
    };
    CHECK_THROWS_WITH_AS(read(), doctest::Contains("broken"), mr::data_error);
    CHECK(batches > 3);
    CHECK((delivered == 0 || delivered == batches));
    delivered = batches;
  }
}

TEST_CASE("a lane without samples is passed over; a rank without any is an error") {
  const numbers_in_shards half_empty{{5, 0}};
  const auto in_order = [&](std::size_t size) {
    return mr::from(half_empty) | mr::map(with_draw) |
           mr::batch<&numbered_row::number, &numbered_row::draw>({.size = size});
  };
  for (const int threads : {0, 2}) {
    auto options = in_epochs(threads, 1, 5);
    const replay_trace unbroken = run_flow(in_order(5), options);
    REQUIRE(unbroken.batches.size() == 5);
    for (const auto& batch : unbroken.batches) CHECK(numbers_of(batch).size() == 5);
    options.resume = unbroken.positions[2];
    CHECK(run_flow(in_order(5), options).batches.front() == unbroken.batches[3]);
    options.resume.clear();
    options.world = {.rank = 1, .size = 2};
    CHECK_THROWS_WITH_AS(run_flow(in_order(4), options),
                         doctest::Contains("the shards of a rank have no sample: got none in 100 "
                                           "passes, expected at least one (lane 1 of 2"),
                         mr::data_error);
  }
}
