#include "../../../copying_device.hpp"
#include "../../../eventually.hpp"
#include "../../io/tar_bytes.hpp"
#include "../../run/quiet_sessions.hpp"

#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/sources/lines.hpp>

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <memory>
#include <set>
#include <sstream>
#include <thread>

namespace mr = millrace;

namespace {

struct piece {
  std::int32_t parent;
  std::int32_t child;
};

/// n -> n % 4 pieces.
struct pieces_of {
  using output = piece;
  std::size_t max_outputs(const int& n) const { return static_cast<std::size_t>(n % 4); }
  void push(int n, auto& emit) const {
    for (int c = 0; c < n % 4; ++c) emit(piece{n, c});
  }
};

/// Joins two neighbors; the remainder is emitted at the end of the epoch.
struct pairs {
  using output = piece;
  std::optional<int> previous{};
  std::size_t max_outputs(const int&) const { return 1; }
  void push(int n, auto& emit) {
    if (previous) emit(piece{*std::exchange(previous, std::nullopt), n});
    else previous = n;
  }
  void finish(auto& emit) {
    if (previous) emit(piece{*std::exchange(previous, std::nullopt), -1});
  }
};

struct fails {
  using output = piece;
  std::size_t max_outputs(const int&) const { return 2; }
  void push(int n, auto& emit) const {
    emit(piece{n, 0});
    if (n == 40) throw std::runtime_error("forty");
  }
};

struct liar {
  using output = piece;
  std::size_t max_outputs(const int&) const { return 1; }
  void push(int n, auto& emit) const {
    emit(piece{n, 0});
    emit(piece{n, 1});
  }
};

template <class Flow>
std::vector<std::pair<int, int>> run_all(Flow flow, mr::session_options options) {
  std::vector<std::pair<int, int>> all;
  mr::feed(std::move(flow), options, [&](auto& b) {
    auto [parent, child] = b.columns();
    for (std::size_t i = 0; i < b.size(); ++i) all.emplace_back(parent.host()[i], child.host()[i]);
  });
  return all;
}

/// The numbers of a line, and the position of each.
struct word {
  std::string file;
  std::uint64_t line;
  std::size_t at;
  std::int32_t number;
};
struct words_of {   // without max_outputs: nobody knows before
  using output = word;
  void push(const mr::line& one, auto& emit) const {
    std::istringstream text{std::string(one.text())};
    std::size_t at = 0;
    for (std::int32_t number = 0; text >> number; ++at)
      emit(word{std::string(one.file()), one.number(), at, number});
  }
};
struct repetition {
  std::int32_t number;
  std::vector<std::uint8_t> key;   // the expected key, filled up with blanks
};
/// As often as the number says; with a finish(), so on a separate thread.
struct repeated {
  using output = repetition;
  void push(const word& w, auto& emit) {
    for (std::int32_t i = 0; i < w.number; ++i) {
      std::string key = w.file.substr(w.file.rfind('/') + 1) + ":" + std::to_string(w.line) + "#" +
                        std::to_string(w.at) + "#" + std::to_string(i);
      key.resize(32, ' ');
      emit(repetition{w.number, {key.begin(), key.end()}});
    }
  }
  void finish(auto&) {}
};

/// A column type that requests two rows at a time and records its calls.
struct twin {
  using element = std::int32_t;
  static constexpr std::size_t together = 2;
  std::int32_t value = 0;
  std::array<std::size_t, 1> shape() const { return {2}; }
  void render(std::span<std::int32_t> row) const {
    if (value == 13) throw std::runtime_error("thirteen");
    row[0] = value;
    row[1] = 1;
  }
  static void render_together(std::span<const twin* const> items, std::span<const std::span<std::int32_t>> rows,
                              mr::scratch&) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      items[i]->render(rows[i]);
      rows[i][1] = 2;
    }
  }
};
struct holds_twin {
  twin column;
};

}  // namespace

TEST_CASE("an expanding stage keeps the order of its inputs, whatever runs in parallel") {
  std::vector<std::pair<int, int>> expected;
  for (int n = 0; n < 500; ++n)
    for (int c = 0; c < n % 4; ++c) expected.emplace_back(n, c);
  for (const int threads : {0, 1, 2, 4}) {
    const auto all = run_all(mr::from(numbers(500)) | mr::expand(pieces_of{}) |
                                 mr::batch<&piece::parent, &piece::child>({.size = 16, .drop_last = false}),
                             quiet(threads));
    CHECK(all == expected);
  }
}

TEST_CASE("keys say which output of which line a row is; stages without max_outputs() are bounded by expand()") {
  const temporary_folder folder;
  std::string names;
  for (const char name : {'a', 'b', 'c'}) {
    std::string text;
    for (int i = 0; i < 40; ++i) text += std::to_string(i % 4) + " 3 " + std::to_string((i + name) % 5) + "\n";
    tar_test::save(folder / (std::string(1, name) + ".txt"), text);
  }
  struct bounds {
    std::size_t words = 3, repeats = 4;
  };
  const auto flow = [&](const bounds& most, mr::device device) {
    return mr::lines(folder.path(), {.seed = 3}) | mr::shuffle({.window = 9}) |
           mr::expand(words_of{}, {.max_outputs = most.words}) |
           mr::filter([](const word& w) { return w.number != 2; }) | mr::shuffle({.window = 5}) |
           mr::expand(repeated{}, {.max_outputs = most.repeats}) |
           mr::batch<&repetition::number, &repetition::key>({.size = 7, .drop_last = false, .keys = true}) |
           mr::to_device({.device = device});
  };
  std::vector<std::string> expected, positions;
  for (const int threads : {0, 1, 3}) {
    std::vector<std::string> keys;
    mr::session run{flow({}, threads == 1 ? copying_device() : mr::host_device()), quiet(threads, 2)};
    for (auto& b : run) {
      const auto right = b.get<&repetition::key>();
      REQUIRE(b.keys().size() == b.size());
      for (std::size_t i = 0; i < b.size(); ++i) {
        std::string key(b.keys()[i].substr(b.keys()[i].rfind('/') + 1));
        CHECK(b.keys()[i].starts_with(folder.path()));
        keys.push_back(key);
        key.resize(32, ' ');
        CHECK(std::equal(key.begin(), key.end(), right[i].begin(), right[i].end()));
      }
      if (threads == 0) positions.push_back(mr::to_text(b.position()));
    }
    CHECK(std::set<std::string>(keys.begin(), keys.end()).size() * 2 == keys.size());   // once in each epoch
    if (expected.empty()) expected = keys;
    CHECK(keys == expected);
  }
  for (const std::size_t cut : {std::size_t{0}, positions.size() / 2, positions.size() - 2}) {
    auto options = quiet(2, 2);
    options.resume = positions[cut];
    std::size_t at = 0;
    std::vector<std::string> rest;
    mr::session run{flow({}, mr::host_device()), options};
    for (auto& b : run)
      for (const std::string_view key : b.keys()) rest.emplace_back(key.substr(key.rfind('/') + 1));
    REQUIRE(rest.size() < expected.size());
    for (at = 0; at < rest.size(); ++at) CHECK(rest[at] == expected[expected.size() - rest.size() + at]);
  }
  for (const int threads : {0, 2}) {
    const auto run_all_of = [&](const bounds& most) {
      mr::session run{flow(most, mr::host_device()), quiet(threads)};
      while (run.next()) {
      }
    };
    CHECK_THROWS_WITH_AS(run_all_of({.words = 2}), doctest::Contains("expand(stage, {.max_outputs = 2})"),
                         mr::setup_error);
    CHECK_THROWS_WITH_AS(run_all_of({.words = 2}), doctest::Contains(".txt:1, stage expand"), mr::setup_error);
    CHECK_THROWS_WITH_AS(run_all_of({.repeats = 3}), doctest::Contains("got more than 3, expected at most 3"),
                         mr::setup_error);
  }
  CHECK_THROWS_WITH_AS(mr::expand(words_of{}, {.max_outputs = 0}), doctest::Contains("expected 1 or more"),
                       mr::setup_error);
}

TEST_CASE("filter drops the items of its predicate") {
  const auto all =
      run_all(mr::from(numbers(300)) | mr::filter([](const int& n) { return n % 3 == 0; }) | mr::map([](int n) {
                return piece{n, 0};
              }) | mr::batch<&piece::parent, &piece::child>({.size = 10}),
              quiet(2, 2));
  REQUIRE(all.size() == 200);
  for (int i = 0; i < 200; ++i) CHECK(all[static_cast<std::size_t>(i)].first == i % 100 * 3);
}

// Threads that miss a signal sleep forever; small runs of cheap stages make that most likely.
TEST_CASE("no run stalls") {
  const stall_watchdog watchdog;
  const auto thirds = [](int n, std::size_t rows) {
    return mr::from(numbers(n)) | mr::filter([](const int& i) {
             if (i == 4620) throw mr::data_error("4620 is bad", "");
             return i % 3 == 0;
           }) |
           mr::map([](int i) { return piece{i, 0}; }) |
           mr::batch<&piece::parent, &piece::child>({.size = rows, .drop_last = false});
  };
  for (int n = 200; n < 500; ++n) {
    auto options = quiet(1 + n % 3, 2);
    options.io_threads = 1 + static_cast<unsigned>(n / 3 % 4);
    REQUIRE(run_all(thirds(n, 10), options).size() == static_cast<std::size_t>((n + 2) / 3) * 2);
  }
  // While batch 8 is kept all free space fills up, and the rows that end the error's batch find none.
  mr::session run{thirds(5000, 100), quiet(2)};
  std::size_t batches = 0;
  const auto train = [&] {
    for (auto& b : run) {
      batches += b.size() == 100;
      if (batches == 9) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  };
  CHECK_THROWS_WITH_AS(train(), doctest::Contains("4620 is bad"), mr::data_error);
  CHECK(batches == 15);
}

TEST_CASE("a stage with state runs in order, and finishes at the end of each epoch") {
  for (const int threads : {0, 1, 4}) {
    const auto all = run_all(mr::from(numbers(101)) | mr::map([](int n) { return n * 10; }) | mr::expand(pairs{}) |
                                 mr::batch<&piece::parent, &piece::child>({.size = 4, .drop_last = false}),
                             quiet(threads, 2));
    REQUIRE(all.size() == 102);
    for (std::size_t epoch = 0; epoch < 2; ++epoch) {
      for (int i = 0; i < 50; ++i)
        CHECK(all[epoch * 51 + static_cast<std::size_t>(i)] == std::pair(i * 20, i * 20 + 10));
      CHECK(all[epoch * 51 + 50] == std::pair(1000, -1));
    }
  }
}

TEST_CASE("a shuffle in the middle is a buffer: same items, another order, the same each time") {
  const auto flow = [] {
    return mr::from(numbers(400), {.seed = 9}) | mr::map([](int n) {
             return piece{n, 0};
           }) |
           mr::shuffle({.window = 50}) | mr::batch<&piece::parent, &piece::child>({.size = 20});
  };
  const auto all = run_all(flow(), quiet(2));
  CHECK(all == run_all(flow(), quiet(0)));
  std::set<int> numbers;
  std::size_t in_place = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    numbers.insert(all[i].first);
    in_place += all[i].first == static_cast<int>(i);
  }
  CHECK(numbers.size() == 400);
  CHECK(in_place < 40);
}

TEST_CASE("stages of all kinds follow each other") {
  for (const int threads : {0, 2}) {
    const auto all = run_all(
        mr::from(numbers(200), {.seed = 2}) | mr::shuffle({.window = 20}) | mr::map([](int n) { return n + 1; }) |
            mr::filter([](const int& n) { return n % 2 == 0; }) | mr::expand(pairs{}) | mr::shuffle({.window = 10}) |
            mr::map([](piece p) { return p.parent + p.child; }) | mr::expand(pieces_of{}) |
            mr::batch<&piece::parent, &piece::child>({.size = 7, .drop_last = false}),
        quiet(threads));
    static std::vector<std::pair<int, int>> first;
    if (first.empty()) first = all;
    CHECK(all == first);
    CHECK(all.size() > 20);
  }
}

TEST_CASE("errors of expanding stages surface in order") {
  mr::session run{mr::from(numbers(100)) | mr::expand(fails{}) | mr::batch<&piece::parent>({.size = 10}), quiet(4)};
  int batches = 0;
  try {
    for (auto& b : run) batches += b.size() == 10;
    FAIL("no error");
  } catch (const mr::stage_error& e) {
    CHECK(e.message() == "forty");
    CHECK(e.where().stage == "expand");
    CHECK(e.where().position == 40);
  }
  CHECK(batches == 4);
}

TEST_CASE("emitting more than promised is an error") {
  const auto run = [] {
    mr::feed(mr::from(numbers(9)) | mr::expand(liar{}) | mr::batch<&piece::parent>({.size = 2}), quiet(2),
             [](auto&) {});
  };
  CHECK_THROWS_WITH_AS(run(), doctest::Contains("max_outputs"), mr::setup_error);
}

TEST_CASE("a column that supports pairs is rendered in twos, and alone where there is no partner") {
  mr::session run{mr::from(numbers(12)) | mr::map([](int n) { return holds_twin{{n}}; }) |
                      mr::batch<&holds_twin::column>({.size = 5, .drop_last = false}),
                  quiet(1)};
  std::int32_t next = 0;
  for (auto& b : run) {
    const auto v = b.get<&holds_twin::column>();
    for (std::size_t i = 0; i < b.size(); ++i) {
      CHECK(v[i].host()[0] == next++);
      const bool alone = i == 4;
      CHECK(v[i].host()[1] == (alone ? 1 : 2));
    }
  }
  CHECK(next == 12);
}

TEST_CASE("a bad partner does not spoil the other, and is the one that is named") {
  mr::session run{mr::from(numbers(40)) | mr::map([](int n) { return holds_twin{{n}}; }) |
                      mr::batch<&holds_twin::column>({.size = 10}),
                  quiet(2)};
  CHECK(run.next().size() == 10);
  try {
    run.next();
    FAIL("no error");
  } catch (const mr::stage_error& e) {
    CHECK(e.message() == "thirteen");
    CHECK(e.where().position == 13);
    CHECK(e.where().stage == "batch");
  }
}

TEST_CASE("the lowest position decides the shapes, a void row with an item too; each is rendered once") {
  using kind = mr::detail::sample<holds_twin>::kind;
  mr::detail::batch_ring ring;
  mr::detail::batch_segment<mr::detail::fused_maps<holds_twin>, mr::detail::columns<&holds_twin::column>> last(
      {}, {.batch = {.rows = 4, .batches = &ring}});
  auto& in = last.entrance();
  for (const std::int32_t n : {0, 1, 2, 3, 4, 5, 6, 7})
    in.put({.item = holds_twin{{n}}, .what = n < 2 || n == 5 ? kind::void_row : kind::item});
  in.publish();
  CHECK(last.make_early(0));   // as on a rank without a row in a short last batch
  REQUIRE(last.layout().batch_bytes() == 256);
  std::array<std::array<std::int32_t, 64>, 2> slots{};
  ring.start({.rows = 4, .memory = {reinterpret_cast<std::byte*>(&slots[0]), reinterpret_cast<std::byte*>(&slots[1])}});
  last.open_slots();
  while (last.advance()) {
  }
  CHECK(in.backlog() == 0);
  CHECK(in.held_bytes() == 0);
  const std::array<std::int32_t, 8> expected[] = {{0, 0, 0, 0, 2, 2, 3, 2}, {4, 1, 0, 0, 6, 2, 7, 2}};
  for (const std::size_t batch : {0, 1}) {
    const auto got = ring.take(batch);
    REQUIRE(got.what == mr::detail::batch_ring::outcome::ready);
    CHECK_FALSE(got.batch.error);
    CHECK(got.batch.rows == (batch == 0 ? 2 : 3));
    const auto* const rows = reinterpret_cast<const std::int32_t*>(got.batch.data);
    CHECK(std::equal(expected[batch].begin(), expected[batch].end(), rows));
  }
}

TEST_CASE("another shape later is a bad item that names both") {
  struct row {
    std::vector<float> values;
  };
  mr::session run{mr::from(numbers(10)) | mr::map([](int n) { return row{std::vector<float>(n == 7 ? 3 : 4)}; }) |
                      mr::batch<&row::values>({.size = 2}),
                  quiet(2)};
  for (int i = 0; i < 3; ++i) CHECK(run.next().get<&row::values>().shape == std::array<std::size_t, 2>{2, 4});
  try {
    run.next();
    FAIL("no error");
  } catch (const mr::data_error& e) {
    CHECK(std::string(e.what()).find("has shape [3] here, but [4]") != std::string::npos);
    CHECK(std::string(e.what()).find("use mr::ragged for variable lengths") != std::string::npos);
  }
}
