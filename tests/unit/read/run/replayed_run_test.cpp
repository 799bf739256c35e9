// Runs without an index, resumed after any batch: the rest is the same as without the interruption.
#include "../../io/tar_bytes.hpp"
#include "replay_flows.hpp"

#include <millrace/io/tar/write/shard_writer.hpp>
#include <millrace/sources/lines.hpp>
#include <millrace/sources/shards.hpp>
#include <millrace/stages/expand.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

namespace mr = millrace;

namespace {

const numbers_in_shards some_numbers{{20, 0, 1, 33, 17, 0, 5, 25}};   // 101
constexpr auto rows_of = [](std::size_t size, bool drop_last = true) {
  return mr::batch<&numbered_row::number, &numbered_row::draw>({.size = size, .drop_last = drop_last});
};

/// 0 to 4 rows of each number.
struct copies_of {
  using output = int;
  std::size_t max_outputs(int n) const { return static_cast<std::size_t>(n % 5); }
  void push(int n, auto& emit) const {
    for (int i = 0; i < n % 5; ++i) emit(1'000 * n + i);
  }
};

/// Sums of three neighbors; the remainder is delivered at the end of an epoch.
struct sums_of_three {
  using output = int;
  int sum = 0, terms = 0;
  std::size_t max_outputs(int) const { return 1; }
  void push(int n, auto& emit) {
    sum += n;
    if (++terms == 3) finish(emit);
  }
  void finish(auto& emit) {
    if (terms > 0) emit(std::exchange(sum, 0));
    terms = 0;
  }
};

/// The number of received items: never empty again.
struct running_count {
  using output = int;
  int pushed = 0;
  std::size_t max_outputs(int) const { return 1; }
  void push(int n, auto& emit) { emit(1'000 * ++pushed + n); }
};

}  // namespace

TEST_CASE("one row for each sample: resumed after any batch of three epochs") {
  for (const std::size_t window : {1, 2, 7, 40, 5'000})
    for (const bool drop_last : {true, false})
      for (const std::size_t size : {1, 8, 101}) {
        if (size == 1 && (window != 7 || drop_last)) continue;   // three hundred cuts each
        CAPTURE(window);
        CAPTURE(drop_last);
        CAPTURE(size);
        const auto flow = [&] {
          return mr::from(some_numbers, {.seed = 3}) | mr::shuffle({.window = window}) | mr::map(with_draw) |
                 rows_of(size, drop_last);
        };
        const replay_trace reference = check_every_cut(flow, quiet(0, 3));
        CHECK(reference.batches.size() == 3 * (size == 8 && !drop_last ? 13 : 101 / size));
        check_chain(flow, quiet(0, 3), reference);
      }
}

TEST_CASE("not shuffled, it continues in the middle of a part") {
  const auto flow = [] { return mr::from(some_numbers) | mr::map(with_draw) | rows_of(6, false); };
  check_chain(flow, quiet(0, 3), check_every_cut(flow, quiet(0, 3)));
}

TEST_CASE("an expanding stage is cut within the outputs of one sample") {
  const auto flow = [] {
    return mr::from(some_numbers, {.seed = 3}) | mr::shuffle({.window = 12}) | mr::expand(copies_of{}) |
           mr::filter([](int n) { return n % 7 != 0; }) | mr::expand(copies_of{}) | mr::map(with_draw) |
           rows_of(7, false);
  };
  check_chain(flow, quiet(0, 3), check_every_cut(flow, quiet(0, 3)));
}

TEST_CASE("a filter") {
  const auto flow = [] {
    return mr::from(some_numbers, {.seed = 3}) | mr::shuffle({.window = 30}) |
           mr::filter([](int n) { return n % 3 == 0; }) | mr::map(with_draw) | rows_of(5);
  };
  check_chain(flow, quiet(0, 3), check_every_cut(flow, quiet(0, 3)));
}

TEST_CASE("a shuffle after a map, and stages that keep items: from the pass's beginning") {
  const auto buffered = [] {
    return mr::from(some_numbers, {.seed = 3}) | mr::shuffle({.window = 9}) | mr::map(with_draw) |
           mr::shuffle({.window = 20}) | rows_of(8, false);
  };
  check_chain(buffered, quiet(0, 3), check_every_cut(buffered, quiet(0, 3)));
  const auto summed = [] {
    return mr::from(some_numbers, {.seed = 3}) | mr::shuffle({.window = 9}) | mr::expand(sums_of_three{}) |
           mr::map(with_draw) | rows_of(4);
  };
  check_chain(summed, quiet(0, 3), check_every_cut(summed, quiet(0, 3)));
}

TEST_CASE("a stage that is never empty again, and a generator: from the run's beginning") {
  for (const bool drop_last : {true, false}) {
    const auto counted = [&] {
      return mr::from(some_numbers, {.seed = 3}) | mr::shuffle({.window = 9}) | mr::expand(running_count{}) |
             mr::map(with_draw) | rows_of(9, drop_last);
    };
    check_chain(counted, quiet(0, 3), check_every_cut(counted, quiet(0, 3)));
    const auto generated = [&] {
      return mr::from([n = 0]() mutable { return ++n % 30 == 0 ? std::nullopt : std::optional(n); }, {.seed = 3}) |
             mr::shuffle({.window = 9}) | mr::map(with_draw) | rows_of(9, drop_last);
    };
    check_chain(generated, quiet(0, 3), check_every_cut(generated, quiet(0, 3)));
  }
}

TEST_CASE("compressed shards: only the parts that are still needed are opened, and the start says so") {
  const temporary_folder folder;
  std::vector<std::string> names;
  for (int shard = 0, label = 0; shard < 6; ++shard) {
    mr::shard_writer writer({.pattern = folder / ("s" + std::to_string(shard) + "-%d.tar")});
    for (int i = 0; i < 20 + shard; ++i, ++label)
      writer.write("k" + std::to_string(label), {{"cls", std::to_string(label)}});
    writer.close();
    const std::string plain = folder / ("s" + std::to_string(shard) + "-0.tar");
    names.push_back(plain + ".gz");
    tar_test::save(names.back(), tar_test::through("gzip -c", tar_test::load(plain)));
  }
  const auto flow = [&](std::vector<std::string> shards) {
    return mr::shards(shards, {.seed = 3, .index = mr::index::off}) | mr::shuffle({.window = 16}) |
           mr::map([](const mr::record& r) { return r["cls"].as<std::int32_t>(); }) | mr::map(with_draw) |
           rows_of(8);
  };
  const replay_trace reference = check_every_cut([&] { return flow(names); }, quiet(0, 3));
  check_chain([&] { return flow(names); }, quiet(0, 3), reference);
  for (const std::string& text : reference.positions) CHECK(text.size() < 300);
  mr::session_options options = quiet(1, 3);
  options.resume = reference.positions[13];
  mr::session resumed{flow(names), options};
  while (resumed.next()) {
  }
  const mr::replay_point from = mr::parse_position(options.resume).replay;
  CHECK(from.shard >= 4);   // batch 14 ends at place 112, and all places more than 16 before that were delivered
  CHECK(from.first > 80);
  CHECK(resumed.description().ends_with(
      "\nmillrace: the run continues after its batch 14 and, without an index, reads " +
      std::to_string(111 - from.first) + " samples again, from shard " + std::to_string(from.shard + 1) +
      " of 6 in pass 0"));
  CHECK(resumed.stats().samples_read == 135 * 3 - from.first);
  names.pop_back();
  CHECK_THROWS_WITH_AS(run_flow(flow(names), options), doctest::Contains("the data set was"), mr::setup_error);
}

TEST_CASE("files that were changed since the resume point are reported in one line, and the run continues") {
  const temporary_folder folder;
  for (const char* name : {"a.txt", "b.txt"}) {
    std::ofstream out(folder / name);
    for (int i = 0; i < 20; ++i) out << name << i << '\n';
  }
  const auto flow = [&] {
    return mr::lines(folder.path(), {.seed = 3}) | mr::map([](const mr::line& l) {
             return static_cast<int>(l.text().size());
           }) | mr::map(with_draw) | rows_of(8);
  };
  mr::session_options options = quiet(1, 3);
  const replay_trace reference = run_flow(flow(), options);
  options.resume = reference.positions[6];
  const auto description = [&] { return mr::session{flow(), options}.description(); };
  CHECK(description().find("the modification times of") == std::string::npos);
  const auto written = std::filesystem::last_write_time(folder / "b.txt");
  std::filesystem::last_write_time(folder / "b.txt", written + std::chrono::nanoseconds(1'000));
  const std::string now = description(), line = now.substr(std::min(now.size(), now.find("\nmillrace: ")));
  CHECK(line.find("the modification times of the source's files have changed: got ") != std::string::npos);
  CHECK(line.find(" (from the resume point). Check that no sample was changed") != std::string::npos);
  const replay_trace rest = run_flow(flow(), options);
  CHECK(rest.batches == decltype(rest.batches)(reference.batches.begin() + 7, reference.batches.end()));
  CHECK(rest.positions.back() != reference.positions.back());   // it contains the current time
  options.resume = rest.positions.front();
  CHECK(description().find("the modification times of") == std::string::npos);
  mr::position older = mr::parse_position(reference.positions[6]);   // which contains none
  older.version = mr::position::oldest_replay_version;
  options.resume = mr::to_text(older);
  CHECK(description().find("the modification times of") == std::string::npos);
}

TEST_CASE("a resume point of another run is refused by name") {
  struct settings {
    std::uint64_t seed = 3;
    std::size_t window = 10, size = 8;
    bool drop_last = true;
    std::vector<int> lengths = some_numbers.lengths;
  };
  const auto flow = [](const settings& s) {
    return mr::from(numbers_in_shards{s.lengths}, {.seed = s.seed}) | mr::shuffle({.window = s.window}) |
           mr::map(with_draw) | rows_of(s.size, s.drop_last);
  };
  mr::session_options options = quiet(1, 3);
  const std::string position = run_flow(flow({}), options, 3).positions.back();
  options.resume = position;
  const auto refused = [&](const settings& s, const char* why) {
    CHECK_THROWS_WITH_AS(run_flow(flow(s), options), doctest::Contains(why), mr::setup_error);
  };
  refused({.seed = 4}, "the seed was 3 and is 4");
  refused({.window = 11}, "the shuffle window was 10 and is 11");
  refused({.size = 9}, "the global batch was 8 and is 9");
  refused({.drop_last = false}, "is one pass with its short last batch");
  refused({.lengths = {50, 51}}, "the data set was");
  const auto expanded = [] {
    return mr::from(some_numbers, {.seed = 3}) | mr::shuffle({.window = 10}) | mr::map(with_draw) |
           mr::shuffle({.window = 10}) | rows_of(8);
  };
  CHECK_THROWS_WITH_AS(run_flow(expanded(), options), doctest::Contains("was any number of ranks and is rank 0 of 1"),
                       mr::setup_error);
  const auto filtered = mr::from(some_numbers, {.seed = 3}) | mr::shuffle({.window = 10}) |
                        mr::filter([](int) { return true; }) | mr::map(with_draw) | rows_of(8);
  options.resume = run_flow(filtered, quiet(1, 3), 3).positions.back();
  CHECK_THROWS_WITH_AS(run_flow(expanded(), options), doctest::Contains("flow with different stages"), mr::setup_error);
  mr::position elsewhere = mr::parse_position(position);
  elsewhere.replay.shard = some_numbers.lengths.size();
  options.resume = mr::to_text(elsewhere);
  CHECK_THROWS_WITH_AS(run_flow(flow({}), options), doctest::Contains("does not have"), mr::data_error);
  options.resume = position.substr(0, position.size() / 2);
  CHECK_THROWS_WITH_AS(run_flow(flow({}), options), doctest::Contains("the resume text is not valid"), mr::data_error);
}

TEST_CASE("resumed, a loop over one epoch ends at its boundary") {
  const auto flow = [] {
    return mr::from(some_numbers, {.seed = 3}) | mr::shuffle({.window = 10}) | mr::map(with_draw) | rows_of(8);
  };
  mr::session_options options = quiet(2, 4);
  options.resume = run_flow(flow(), options, 15).positions.back();   // 12 batches an epoch
  mr::session run{flow(), options};
  for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
    std::size_t batches = 0;
    for (auto& b : run.epoch(epoch)) batches += b.epoch() == epoch;
    CHECK(batches == (epoch == 0 ? 0 : epoch == 1 ? 9 : 12));
  }
}

TEST_CASE("epochs of a fixed number of batches: passes follow each other, no row is dropped, each pass draws other "
          "values") {
  for (const std::size_t window : {1, 12}) {
    const auto flow = [&] {
      return mr::from(some_numbers, {.seed = 3}) | mr::shuffle({.window = window}) | mr::map(with_draw) | rows_of(10);
    };
    mr::session_options options = quiet(0, 4);
    options.epoch_batches = 7;
    const replay_trace reference = check_every_cut(flow, options);
    check_chain(flow, options, reference);
    REQUIRE(reference.batches.size() == 28);
    std::map<std::int64_t, std::set<double>> draws;
    for (std::size_t b = 0; b < 28; ++b) {
      CHECK(reference.epochs[b] == b / 7);
      for (const auto& [number, draw] : reference.batches[b]) draws[number].insert(draw);
    }
    std::size_t rows = 0;
    for (const auto& [number, values] : draws) rows += values.size();
    CHECK(draws.size() == 101);   // all of them twice, and 78 a third time
    CHECK(rows == 280);
  }
}

TEST_CASE("epochs of a fixed number of batches, of flows that expand, or keep items until the end of a pass") {
  mr::session_options options = quiet(0, 3);
  options.epoch_batches = 9;
  const auto expanded = [] {
    return mr::from(some_numbers, {.seed = 3}) | mr::shuffle({.window = 12}) | mr::expand(copies_of{}) |
           mr::map(with_draw) | rows_of(11);
  };
  check_chain(expanded, options, check_every_cut(expanded, options));
  const auto summed = [] {
    return mr::from(some_numbers, {.seed = 3}) | mr::expand(sums_of_three{}) | mr::map(with_draw) |
           mr::shuffle({.window = 20}) | rows_of(4);
  };
  check_chain(summed, options, check_every_cut(summed, options));
}

TEST_CASE("an endless epoch ends when its session does, and is continued in another") {
  const auto flow = [] {
    return mr::from(some_numbers, {.seed = 3}) | mr::shuffle({.window = 12}) | mr::map(with_draw) | rows_of(10);
  };
  mr::session_options options = quiet(2);
  options.epoch_batches = mr::endless;
  const replay_trace reference = run_flow(flow(), options, 60);
  for (const std::uint64_t epoch : reference.epochs) CHECK(epoch == 0);
  options.resume = reference.positions[41];
  CHECK(run_flow(flow(), options, 18).batches ==
        decltype(reference.batches)(reference.batches.begin() + 42, reference.batches.end()));
  options.epoch_batches = 60;
  CHECK_THROWS_WITH_AS(run_flow(flow(), options), doctest::Contains("an epoch was endless and is 60 batches"),
                       mr::setup_error);
}

TEST_CASE("an endless run of a source that delivers nothing is an error, not a wait") {
  mr::session_options options = quiet(2);
  options.epoch_batches = 10;
  const auto none = [] {
    return mr::from(some_numbers) | mr::filter([](int) { return false; }) | mr::map(with_draw) | rows_of(10);
  };
  CHECK_THROWS_WITH_AS(run_flow(none(), options), doctest::Contains("samples passed filter 1"), mr::setup_error);
}
