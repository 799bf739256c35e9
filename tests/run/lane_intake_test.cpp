// Several ranks over a source without an index: one order of all of them together, and resume points that any number of
// ranks may use.
#include "replay_flows.hpp"

#include <millrace/stages/expand.hpp>

#include <algorithm>
#include <atomic>
#include <memory>
#include <tuple>

namespace mr = millrace;

namespace {

constexpr std::size_t global_batch = 24;
using rows = std::vector<std::pair<std::int64_t, double>>;

/// 26 parts; by 48 lanes as asked for, 24 are used.
const numbers_in_parts many_parts{{9, 4, 13, 0, 7, 7, 1, 20, 3, 8, 8, 5, 6, 2, 11, 9, 4, 4, 0, 16, 3, 7, 12, 5, 6, 10}};

template <class Source>
auto flow(const Source& source, std::size_t ranks, std::size_t window = 60, std::uint64_t seed = 7) {
  return mr::from(source, {.seed = seed}) | mr::shuffle({.window = window}) | mr::map(with_draw) |
         mr::batch<&numbered_row::number, &numbered_row::drawn>({.size = global_batch / ranks});
}

mr::session_options in_epochs(int threads, std::uint64_t epochs, std::uint64_t epoch_batches) {
  mr::session_options options = quiet(threads, epochs);
  options.epoch_batches = epoch_batches;
  return options;
}

/// The batches of all ranks together in the order of positions, and the text behind the last one.
template <class Source>
std::pair<std::vector<rows>, std::string> run_all_ranks(const Source& source, mr::session_options options,
                                                        std::size_t world_size, std::size_t window = 60,
                                                        std::size_t most_batches = ~std::size_t{0}) {
  std::vector<rows> all;
  std::string text;
  for (std::size_t r = 0; r < world_size; ++r) {
    options.ranks = {.rank = r, .world_size = world_size};
    const replay_trace t = run_flow(flow(source, world_size, window), options, most_batches);
    all.resize(t.batches.size(), rows(global_batch));
    for (std::size_t b = 0; b < t.batches.size(); ++b)
      for (std::size_t i = 0; i < global_batch / world_size; ++i) all[b][i * world_size + r] = t.batches[b][i];
    REQUIRE((text.empty() || text == t.positions.back()));   // every rank has the same one
    text = t.positions.back();
  }
  return {all, text};
}

/// Counts how often a part is opened.
struct counting : numbers_in_parts {
  static constexpr bool same_every_pass = true;
  std::shared_ptr<std::atomic<int>> opened = std::make_shared<std::atomic<int>>(0);
  reader open(std::size_t part, std::uint64_t pass) const {
    ++*opened;
    return numbers_in_parts::open(part, pass);
  }
};

/// 0 to 3 rows of each number.
struct copies_of {
  using output = int;
  std::size_t max_outputs(int n) const { return static_cast<std::size_t>(n % 4); }
  void push(int n, auto& emit) const {
    for (int i = 0; i < n % 4; ++i) emit(1'000 * n + i);
  }
};

/// The same by sorting: each lane's samples of many passes by their keys; then a row of each lane in turn.
std::vector<rows> reference(std::size_t lanes, std::size_t window, std::size_t batches) {
  using keyed = std::tuple<std::uint64_t, std::uint64_t, std::pair<std::int64_t, double>>;
  std::vector<std::vector<keyed>> sorted(lanes);
  for (std::size_t l = 0; l < lanes; ++l) {
    const mr::plan plan({.seed = 7, .parts = many_parts.parts(), .shuffled = true,
                         .window = std::max<std::size_t>(1, window / lanes), .lane = l, .lanes = lanes});
    for (std::uint64_t pass = 0; pass < 60; ++pass)
      for (const std::size_t part : plan.parts_of(pass)) {
        auto reader = many_parts.open(part, pass);
        std::uint64_t index = 0;
        while (const auto n = reader.next()) {
          mr::draw random({.seed = 7, .epoch = pass, .sample = mr::sample_id(part, index++), .stage = 0});
          const std::uint64_t place = sorted[l].size();
          const std::uint64_t key = plan.jitters() ? plan.jitter_key(pass, place) : place << 16;
          sorted[l].push_back({key, place, {*n, random.uniform()}});
        }
      }
    std::sort(sorted[l].begin(), sorted[l].end());
  }
  std::vector<rows> all(batches);
  for (std::uint64_t p = 0; p < batches * global_batch; ++p)
    all[p / global_batch].push_back(std::get<2>(sorted[p % lanes].at(p / lanes)));
  return all;
}

}  // namespace

TEST_CASE("order and draws are those of the lanes, for every number of workers, I/O threads and ranks") {
  for (const std::size_t window : {1, 60, 600}) {
    const auto expected = reference(24, window, 30);
    for (const std::size_t ranks : {1, 2, 3, 4, 6, 8, 12, 24}) {
      CAPTURE(window);
      CAPTURE(ranks);
      auto options = in_epochs(static_cast<int>(ranks % 5), 3, 10);
      options.io_threads = 1 + static_cast<unsigned>(ranks % 4);
      CHECK(run_all_ranks(many_parts, options, ranks, window).first == expected);
    }
    for (const int threads : {0, 1, 2, 4})
      for (const std::size_t read_ahead : {std::size_t{1}, std::size_t{400}, std::size_t{0}}) {
        auto options = in_epochs(threads, 3, 10);
        options.read_ahead_bytes = read_ahead;
        CHECK(run_all_ranks(many_parts, options, 1, window).first == expected);
      }
  }
}

TEST_CASE("resumed behind any batch, by another number of ranks, the rest is what it would have been") {
  const auto whole = run_all_ranks(many_parts, in_epochs(0, 3, 10), 1).first;
  const std::size_t worlds[] = {1, 2, 3, 4, 6, 8, 12, 24};
  for (std::size_t cut = 1; cut < whole.size(); cut += stride(5)) {
    CAPTURE(cut);
    auto options = in_epochs(static_cast<int>(cut % 3), 3, 10);
    options.resume = run_all_ranks(many_parts, options, worlds[cut % 8], 60, cut).second;
    CHECK(options.resume.size() < 300);
    const auto rest = run_all_ranks(many_parts, options, worlds[cut * 3 % 8]).first;
    REQUIRE(rest == std::vector<rows>(whole.begin() + static_cast<std::ptrdiff_t>(cut), whole.end()));
  }
}

TEST_CASE("resumed again and again, with other ranks and workers each time") {
  const auto whole = run_all_ranks(many_parts, in_epochs(0, 3, 10), 1).first;
  std::vector<rows> pieced;
  const std::size_t worlds[] = {4, 1, 12, 3, 2, 8};
  auto options = in_epochs(0, 3, 10);
  for (std::size_t turn = 0; pieced.size() < whole.size(); ++turn) {
    options.threads = static_cast<int>(turn % 4);
    const auto [some, text] = run_all_ranks(many_parts, options, worlds[turn % 6], 60, 1 + turn % 5);
    pieced.insert(pieced.end(), some.begin(), some.end());
    options.resume = text;
  }
  CHECK(pieced == whole);
  CHECK_THROWS_WITH_AS(run_all_ranks(many_parts, options, 2), doctest::Contains("the run is over"), mr::setup_error);
}

TEST_CASE("of a source that says it is the same in every pass, each part is counted once at most") {
  const counting source{many_parts};
  auto options = in_epochs(1, 1, 1'000);
  const auto whole = run_flow(flow(source, 1), options);
  options.resume = whole.positions[899];   // 117 passes later
  source.opened->store(0);
  options.threads = 0;   // which reads no more than it has to
  mr::session rest{flow(source, 1), options};
  CHECK(source.opened->load() <= 26 + 4 * 24);
  CHECK(rest.description().find("has counted the samples of 26 parts") != std::string::npos);
  const auto [numbers, drawn] = rest.next().columns();
  CHECK(numbers.host()[0] == whole.batches[900][0].first);
}

TEST_CASE("an expanding flow: each rank has rows of its own, and its resume points are its own") {
  const auto expanding = [] {
    return mr::from(many_parts, {.seed = 7}) | mr::shuffle({.window = 60}) | mr::expand(copies_of{}) |
           mr::map(with_draw) | mr::batch<&numbered_row::number, &numbered_row::drawn>({.size = 7});
  };
  auto options = in_epochs(0, 3, 8);
  for (const std::size_t rank : {0, 2}) {
    options.ranks = {.rank = rank, .world_size = 3};
    check_chain(expanding, options, check_every_cut(expanding, options));
  }
  options.resume = run_flow(expanding(), options, 3).positions.back();
  options.ranks.rank = 1;
  CHECK_THROWS_WITH_AS(run_flow(expanding(), options), doctest::Contains("was rank 2 of 3 and is rank 1 of 3"),
                       mr::setup_error);
  options.ranks = {.rank = 2, .world_size = 4};
  CHECK_THROWS_WITH_AS(run_flow(expanding(), options), doctest::Contains("was rank 2 of 3 and is rank 2 of 4"),
                       mr::setup_error);
}

TEST_CASE("a shuffle behind a map, on two ranks: from the run's beginning") {
  const auto buffered = [] {
    return mr::from(numbers_in_parts{{9, 14, 3, 20}}) | mr::map(with_draw) | mr::shuffle({.window = 20}) |
           mr::batch<&numbered_row::number, &numbered_row::drawn>({.size = 12});
  };
  auto options = in_epochs(0, 2, 9);
  options.ranks = {.rank = 1, .world_size = 2};
  check_chain(buffered, options, check_every_cut(buffered, options));
}

TEST_CASE("what does not go together is refused at the start, by name") {
  const auto refused = [](std::vector<int> lengths, mr::session_options options, const char* why) {
    CHECK_THROWS_WITH_AS(run_flow(flow(numbers_in_parts{std::move(lengths)}, 1), options), doctest::Contains(why),
                         mr::setup_error);
  };
  auto options = in_epochs(1, 1, 0);
  options.ranks = {.rank = 0, .world_size = 2};
  refused({50, 50}, options, "Set session_options::epoch_batches, or use indexed_shards()");
  options.epoch_batches = 5;
  options.ranks = {.rank = 0, .world_size = 4};
  refused({50, 50, 50}, options, "4 ranks do not divide the 3 lanes: session_options::lanes asks for 48, and the "
                                 "source has 3 parts (shards)");
  options.ranks = {.rank = 2, .world_size = 2};
  refused({50, 50}, options, "there is no rank 2 of 2");
  options.ranks = {.rank = 0, .world_size = 2};
  options.resume = run_flow(flow(numbers_in_parts{{50, 50}}, 2), options, 1).positions.back();
  options.lanes = 1;
  options.ranks = {};
  refused({50, 50}, options, "the number of lanes was 2 and is 1");
}

TEST_CASE("an error of a part surfaces at its batch, after all before it; a lane without samples is one") {
  struct breaking : numbers_in_parts {
    struct reader {
      numbers_in_parts::reader good;
      int left;
      std::optional<int> next() {
        if (left-- == 0) throw mr::data_error("broken", "Mend it");
        return good.next();
      }
    };
    reader open(std::size_t part, std::uint64_t pass) const {
      return {numbers_in_parts::open(part, pass), part == 7 && pass == 1 ? 10 : 1'000};
    }
  };
  const auto expected = run_all_ranks(many_parts, in_epochs(0, 1, 30), 1, 1).first;
  std::size_t delivered = 0;
  for (const int threads : {0, 1, 3}) {
    mr::session session{flow(breaking{many_parts}, 1, 1), in_epochs(threads, 1, 30)};
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
  const numbers_in_parts half_empty{{5, 0}};
  const auto in_order = [&] {
    return mr::from(half_empty) | mr::map(with_draw) |
           mr::batch<&numbered_row::number, &numbered_row::drawn>({.size = 4});
  };
  for (const int threads : {0, 2})
    CHECK_THROWS_WITH_AS(run_flow(in_order(), in_epochs(threads, 1, 5)),
                         doctest::Contains("lane 1 of 2 has no sample"), mr::data_error);
}
