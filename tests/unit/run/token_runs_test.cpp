// Runs over files of tokens and over ranges: their order, ranks and resume points are those of a planned run, without
// an index.
#include "../../temporary_folder.hpp"
#include "quiet_sessions.hpp"

#include <millrace/text.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <fstream>
#include <list>
#include <string>

namespace mr = millrace;

namespace {

/// Four files of 40, 1, 0 and 90 windows of two tokens; each begins with the number of the window in the set.
constexpr int windows = 131;

std::vector<std::string> write_tokens(const temporary_folder& folder) {
  std::vector<std::string> names;
  std::uint16_t number = 0;
  for (const int count : {40, 1, 0, 90}) {
    names.push_back(folder / ("t" + std::to_string(names.size()) + ".u16"));
    std::ofstream file(names.back(), std::ios::binary);
    for (int i = 0; i < count; ++i, ++number) {
      const std::uint16_t window[] = {number, static_cast<std::uint16_t>(1'000 + number)};
      file.write(reinterpret_cast<const char*>(window), sizeof window);
    }
  }
  return names;
}

struct run_options {
  std::size_t window = 0;
  mr::world world{};
  std::uint64_t epochs = 1;
  std::string resume{};
  std::size_t global_batch = 12;
  std::uint64_t epoch_batches = 0;
  bool drop_last = true;
  int threads = 2;
};
struct delivered {
  std::vector<std::uint32_t> numbers{};
  std::vector<std::string> keys{}, points{};
  std::uint64_t digest = 0, read = 0;
};

template <class Flow>
delivered deliver(Flow flow, const run_options& o) {
  delivered d;
  mr::session run{std::move(flow), {.epochs = o.epochs, .epoch_batches = o.epoch_batches, .threads = o.threads,
                                    .notice = mr::quiet, .world = o.world, .resume = o.resume}};
  for (auto& b : run) {
    const auto ids = b.template get<&mr::packed::ids>();
    for (std::size_t i = 0; i < b.size(); ++i) {
      CHECK(ids(i, 1) == ids(i, 0) + 1'000);
      d.numbers.push_back(ids(i, 0));
    }
    for (const auto& key : b.keys()) d.keys.emplace_back(key);
    d.points.push_back(mr::to_text(b.position()));
  }
  d.digest = run.stats().digest;
  d.read = run.stats().samples_read;
  return d;
}

delivered deliver(const std::vector<std::string>& names, const run_options& o) {
  auto source = mr::token_files(names, {.length = 2, .seed = 5});
  const mr::batch_options batch{.size = o.global_batch / o.world.size, .drop_last = o.drop_last, .keys = true};
  if (o.window == 0) return deliver(std::move(source) | mr::batch<&mr::packed::ids>(batch), o);
  return deliver(std::move(source) | mr::shuffle({.window = o.window}) | mr::batch<&mr::packed::ids>(batch), o);
}

std::vector<std::uint32_t> sorted(std::vector<std::uint32_t> v) {
  std::sort(v.begin(), v.end());
  return v;
}
std::vector<std::uint32_t> all_windows() {
  std::vector<std::uint32_t> v(windows);
  std::iota(v.begin(), v.end(), 0U);
  return v;
}

}  // namespace

TEST_CASE("token_files: all ranks together have each window once a pass, in one order for any world size") {
  const temporary_folder folder;
  const auto names = write_tokens(folder);
  for (const std::size_t window : {std::size_t{0}, std::size_t{100}, std::size_t{10'000}}) {
    CAPTURE(window);
    const delivered one = deliver(names, {.window = window, .epochs = 2, .drop_last = false});
    REQUIRE(one.numbers.size() == 2 * windows);
    const auto pass = [&](std::size_t n) {
      return std::vector<std::uint32_t>(one.numbers.begin() + static_cast<std::ptrdiff_t>(n * windows),
                                        one.numbers.begin() + static_cast<std::ptrdiff_t>((n + 1) * windows));
    };
    CHECK(sorted(pass(0)) == all_windows());
    CHECK(sorted(pass(1)) == all_windows());
    CHECK((pass(0) == all_windows()) == (window == 0));
    CHECK((pass(0) == pass(1)) == (window == 0));
    for (const std::size_t ranks : {2U, 3U, 4U}) {
      CAPTURE(ranks);
      std::vector<delivered> shares;
      std::uint64_t digest = 0;
      for (std::size_t r = 0; r < ranks; ++r) {
        shares.push_back(deliver(names, {.window = window, .world = {.rank = r, .size = ranks}, .epochs = 2,
                                         .drop_last = false}));
        digest += shares.back().digest;
      }
      // Position p of a pass belongs to rank p mod ranks.
      std::vector<std::size_t> at(ranks);
      std::vector<std::uint32_t> together;
      for (int n = 0; n < 2; ++n)
        for (int p = 0; p < windows; ++p) {
          const auto r = static_cast<std::size_t>(p) % 12 % ranks;
          REQUIRE(at[r] < shares[r].numbers.size());
          together.push_back(shares[r].numbers[at[r]++]);
        }
      CHECK(together == one.numbers);
      CHECK(digest == one.digest);
    }
  }
}

TEST_CASE("token_files: a window of all samples shuffles them all, not only neighbors") {
  const temporary_folder folder;
  const std::string name = folder / "sorted.u16";
  constexpr int count = 2'000;
  {
    std::ofstream file(name, std::ios::binary);
    for (int i = 0; i < count; ++i) {
      const std::uint16_t window[] = {static_cast<std::uint16_t>(i), static_cast<std::uint16_t>(1'000 + i)};
      file.write(reinterpret_cast<const char*>(window), sizeof window);
    }
  }
  // The first batches of a sorted file have windows of all of its quarters.
  const delivered d = deliver({name}, {.window = count, .global_batch = 100});
  int quarters[4] = {};
  for (int i = 0; i < 200; ++i) ++quarters[d.numbers[static_cast<std::size_t>(i)] / (count / 4)];
  for (const int quarter : quarters) CHECK(quarter >= 20);   // 50 expected, 20 is 5 sigma away
}

TEST_CASE("token_files: a resumed run continues after any batch, and reads nothing again") {
  const temporary_folder folder;
  const auto names = write_tokens(folder);
  for (const std::size_t window : {std::size_t{0}, std::size_t{50}}) {
    for (const std::uint64_t epoch_batches : {std::uint64_t{0}, std::uint64_t{7}}) {
      const run_options o{.window = window, .epochs = 3, .epoch_batches = epoch_batches};
      const delivered full = deliver(names, o);
      const std::size_t batches = full.points.size();
      for (const std::size_t from : {std::size_t{0}, batches / 2, batches - 2}) {
        CAPTURE(from);
        for (const std::size_t ranks : {1U, 2U}) {
          run_options again = o;
          again.resume = full.points[from];
          again.world = {.rank = 0, .size = ranks};
          const delivered rest = deliver(names, again);
          std::vector<std::uint32_t> expected;
          for (std::size_t i = 12 * (from + 1); i < full.numbers.size(); i += ranks)
            expected.push_back(full.numbers[i]);
          CHECK(rest.numbers == expected);
          CHECK(rest.points.back() == (ranks == 1 ? full.points.back() : rest.points.back()));
        }
      }
    }
  }
  // In the last pass only the rest is read.
  const delivered full = deliver(names, {.window = 50, .epochs = 40});
  const delivered rest = deliver(names, {.window = 50, .epochs = 40, .resume = full.points[full.points.size() - 2]});
  CHECK(rest.numbers.size() == 12);
  CHECK(rest.read == 12);
}

TEST_CASE("token_files: rows have the names of their windows, and locate() returns their place") {
  const temporary_folder folder;
  const auto names = write_tokens(folder);
  const delivered d = deliver(names, {.window = 50});
  REQUIRE(d.keys.size() == d.numbers.size());
  for (std::size_t i = 0; i < d.keys.size(); ++i) {
    const std::uint32_t n = d.numbers[i];
    const std::string expected = n < 40   ? names[0] + ":" + std::to_string(n)
                                 : n < 41 ? names[1] + ":0"
                                          : names[3] + ":" + std::to_string(n - 41);
    CHECK(d.keys[i] == expected);
  }
  mr::session run{mr::token_files(names, {.length = 2}) | mr::batch<&mr::packed::ids>({.size = 12}), quiet(2)};
  CHECK(run.locate(0, 42).shard == names[3]);
  CHECK(run.locate(0, 42).offset_bytes == 4);
}

TEST_CASE("token_files: flows that change the number of rows are streams, as before") {
  const temporary_folder folder;
  const auto names = write_tokens(folder);
  const auto source = [&] { return mr::token_files(names, {.length = 2, .keep_short = true}); };
  auto packing = source() | mr::pack({.length = 8}) | mr::batch<&mr::packed::ids>({.size = 1});
  auto filtering = source() | mr::filter([](const mr::packed& p) { return p.ids[0] % 2 == 0; }) |
                   mr::batch<&mr::packed::ids>({.size = 12, .drop_last = false, .keys = true});
  auto taking = source() | mr::take(20) | mr::batch<&mr::packed::ids>({.size = 10});
  auto planned = source() | mr::map([](mr::packed p) { return p; }) |
                 mr::batch<&mr::packed::ids>({.size = 12, .keys = true});
  static_assert(!mr::detail::may_be_planned<decltype(packing)>());
  static_assert(!mr::detail::may_be_planned<decltype(filtering)>());
  static_assert(!mr::detail::may_be_planned<decltype(taking)>());
  static_assert(mr::detail::may_be_planned<decltype(planned)>());
  std::vector<std::uint32_t> ids;
  mr::session run{std::move(packing), quiet(2)};
  for (auto& b : run)
    for (const std::uint32_t id : b.get<&mr::packed::ids>()[0].span()) ids.push_back(id);
  CHECK(ids.size() == 264);   // 262 tokens, and two of padding
  CHECK(ids[82] == 41);
  const delivered even = deliver(std::move(filtering), {.threads = 2});
  CHECK(even.numbers.size() == 66);
  // A resume point of a stream is refused by a planned run.
  CHECK_THROWS_WITH_AS(deliver(std::move(planned), {.resume = even.points[1]}),
                       doctest::Contains("the order's version was"), mr::setup_error);
}

TEST_CASE("token_files: an id beyond the vocabulary is an error at its batch, or damage of one row") {
  const temporary_folder folder;
  const auto names = write_tokens(folder);
  const auto flow = [&] {
    return mr::token_files(names, {.length = 2, .vocabulary = 1'100}) | mr::batch<&mr::packed::ids>({.size = 20});
  };
  std::size_t batches = 0;
  try {
    mr::session run{flow(), quiet(2)};
    for (auto& b : run) batches += b.size() / 20;
    CHECK(false);
  } catch (const mr::data_error& e) {
    CHECK(batches == 5);
    CHECK(std::string(e.what()).find("got id 1100, expected 0 to 1099") != std::string::npos);
    CHECK(e.where().shard == names[3]);
    CHECK(e.where().offset_bytes == 4 * (100 - 41) + 2);
  }
  mr::session masked{flow(), {.threads = 2, .notice = mr::quiet,
                              .on_damage = {.policy = mr::damage::mask, .at_most_share = 1}}};
  std::size_t rows = 0;
  for (auto& b : masked) rows += b.size();
  CHECK(rows == 120);
  CHECK(masked.stats().masked == 20);
}

namespace {

struct row {
  std::int32_t n;
};

struct delivered_range {
  std::vector<int> numbers{};
  std::vector<std::string> points{}, keys{};
};
template <class Flow>
delivered_range deliver_range(const Flow& flow, const mr::session_options& o) {
  delivered_range d;
  mr::session run{flow, o};
  for (auto& b : run) {
    for (const std::int32_t n : b.template get<&row::n>().host()) d.numbers.push_back(n);
    for (const auto& key : b.keys()) d.keys.emplace_back(key);
    d.points.push_back(mr::to_text(b.position()));
  }
  return d;
}
const auto to_row = mr::map([](int n) { return row{n}; });

}  // namespace

TEST_CASE("from(range): all ranks together have each element once a pass, in one order for any world size") {
  const std::vector<int> source = numbers(130);
  for (const std::size_t window : {std::size_t{1}, std::size_t{1'000}}) {
    const auto flow = [&](std::size_t rows) {
      return mr::from(source, {.seed = 4}) | mr::shuffle({.window = window}) | to_row |
             mr::batch<&row::n>({.size = rows, .drop_last = false, .keys = true});
    };
    const delivered_range one = deliver_range(flow(12), quiet(2, 2));
    REQUIRE(one.numbers.size() == 260);
    for (const std::size_t pass : {0U, 1U}) {
      std::vector<int> all(one.numbers.begin() + static_cast<std::ptrdiff_t>(130 * pass),
                           one.numbers.begin() + static_cast<std::ptrdiff_t>(130 * (pass + 1)));
      CHECK((all == source) == (window == 1));
      std::sort(all.begin(), all.end());
      CHECK(all == source);
    }
    for (std::size_t i = 0; i < 260; ++i) CHECK(one.keys[i] == std::to_string(one.numbers[i]));
    for (const std::size_t ranks : {2U, 3U}) {
      std::vector<delivered_range> shares;
      for (std::size_t r = 0; r < ranks; ++r) {
        mr::session_options o = quiet(2, 2);
        o.world = {.rank = r, .size = ranks};
        shares.push_back(deliver_range(flow(12 / ranks), o));
      }
      std::vector<std::size_t> at(ranks);
      std::vector<int> together;
      for (int n = 0; n < 2; ++n)
        for (std::size_t p = 0; p < 130; ++p) together.push_back(shares[p % ranks].numbers.at(at[p % ranks]++));
      CHECK(together == one.numbers);
    }
    mr::session_options o = quiet(2, 2);
    o.resume = one.points[14];
    const delivered_range rest = deliver_range(flow(12), o);
    CHECK(rest.numbers == std::vector<int>(one.numbers.end() - static_cast<std::ptrdiff_t>(rest.numbers.size()),
                                           one.numbers.end()));
    CHECK(rest.numbers.size() == 260 - 130 - 4 * 12);
    // A range of another size is another data set.
    const std::vector<int> longer = numbers(131);
    CHECK_THROWS_WITH_AS(deliver_range(mr::from(longer, {.seed = 4}) | mr::shuffle({.window = window}) | to_row |
                                     mr::batch<&row::n>({.size = 12, .drop_last = false, .keys = true}), o),
                         doctest::Contains("the data set was"), mr::setup_error);
  }
}

TEST_CASE("from(range): which ranges are planned, and which stay streams") {
  std::vector<int> vector = numbers(20);
  std::deque<int> deque(vector.begin(), vector.end());
  std::list<int> list(vector.begin(), vector.end());
  const auto rows = [](auto flow) { return std::move(flow) | to_row | mr::batch<&row::n>({.size = 5, .keys = true}); };
  static_assert(mr::detail::may_be_planned<decltype(rows(mr::from(vector)))>());
  static_assert(mr::detail::may_be_planned<decltype(rows(mr::from(deque)))>());
  static_assert(mr::detail::may_be_planned<decltype(rows(mr::from(std::vector<int>{1})))>());
  static_assert(!mr::detail::may_be_planned<decltype(rows(mr::from(list)))>());
  static_assert(!mr::detail::may_be_planned<decltype(rows(mr::from(vector) | mr::take(3)))>());
  static_assert(!mr::detail::may_be_planned<decltype(rows(mr::from([] { return std::optional<int>(1); })))>());
  CHECK(deliver_range(rows(mr::from(vector)), quiet(2)).numbers == vector);
  CHECK(deliver_range(rows(mr::from(deque)), quiet(2)).numbers == vector);
  CHECK(deliver_range(rows(mr::from(list)), quiet(2)).numbers == vector);
  CHECK(deliver_range(rows(mr::from(numbers(20))), quiet(2)).numbers == vector);
  CHECK_THROWS_WITH_AS(deliver_range(rows(mr::from(std::vector<int>{})), quiet(2)),
                       doctest::Contains("the range of from() is empty"), mr::setup_error);
}

TEST_CASE("from(range): a resume point of a version in which ranges were streams is refused by that version") {
  mr::session_options o = quiet(2, 2);
  o.lanes = 1;
  const std::vector<int> source = numbers(100);
  const std::list<int> stream(source.begin(), source.end());
  const auto rows = [](auto flow) { return std::move(flow) | to_row | mr::batch<&row::n>({.size = 10, .keys = true}); };
  o.resume = deliver_range(rows(mr::from(stream)), o).points[3];
  CHECK(deliver_range(rows(mr::from(stream)), o).numbers.size() == 160);
  CHECK_THROWS_WITH_AS(deliver_range(rows(mr::from(source)), o), doctest::Contains("the order's version was"),
                       mr::setup_error);
}
