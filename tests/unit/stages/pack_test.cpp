// Packing without an engine: the rows of documents, token by token.
#include <millrace/item/sample.hpp>
#include <millrace/stages/pack.hpp>

#include <doctest/doctest.h>

#include <map>
#include <random>

namespace mr = millrace;

namespace {

using ids = std::vector<std::uint32_t>;
using documents = std::vector<ids>;

template <class Packing>
std::vector<mr::packed> rows_of(Packing packing, const documents& all) {
  std::vector<mr::packed> rows;
  const auto emit = [&](mr::packed row) { rows.push_back(std::move(row)); };
  for (const ids& d : all) {
    const std::size_t before = rows.size(), most = packing.max_outputs(d);
    packing.push(d, emit);
    REQUIRE(rows.size() - before <= most);
  }
  packing.finish(emit);
  return rows;
}

/// All tokens are different.
documents random_documents(std::mt19937& random, std::size_t max_tokens) {
  documents all(random() % 40);
  std::uint32_t token = 100;
  for (ids& d : all) {
    d.resize(random() % 6 ? random() % max_tokens : 0);
    for (std::uint32_t& t : d) t = ++token;
  }
  return all;
}

}  // namespace

TEST_CASE("document after document, with every option") {
  const auto rows = rows_of(mr::pack({.length = 4, .separator = 9, .padding = 0, .segments = true, .positions = true})
                                .expanding,
                            {{1, 2}, {}, {3}, {4, 5, 6, 7}, {8}});
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].ids == ids{1, 2, 9, 3});
  CHECK(rows[0].segments == ids{1, 1, 1, 2});
  CHECK(rows[0].positions == ids{0, 1, 2, 0});
  CHECK(rows[1].ids == ids{9, 4, 5, 6});
  CHECK(rows[1].segments == ids{1, 2, 2, 2});
  CHECK(rows[1].positions == ids{0, 0, 1, 2});
  CHECK(rows[2].ids == ids{7, 9, 8, 9});
  CHECK(rows[2].segments == ids{1, 1, 2, 2});
  CHECK(rows[2].positions == ids{0, 1, 0, 1});
  const auto plain = rows_of(mr::pack({.length = 4}).expanding, {{1, 2}, {3, 4, 5}});
  REQUIRE(plain.size() == 2);
  CHECK(plain[0].ids == ids{1, 2, 3, 4});
  CHECK(plain[1].ids == ids{5, 0, 0, 0});
  CHECK(plain[1].segments.empty());
  CHECK_THROWS_AS(mr::pack({.length = 0}), mr::setup_error);
}

TEST_CASE("random documents: the rows are their tokens in one line") {
  std::mt19937 random(5);
  for (int i = 0; i < 300; ++i) {
    const documents all = random_documents(random, 1 + random() % 60);
    const std::size_t length = 1 + random() % 20;
    const bool separated = random() % 2;
    ids line;
    for (const ids& d : all) {
      line.insert(line.end(), d.begin(), d.end());
      if (separated && !d.empty()) line.push_back(7);
    }
    mr::pack_options o{.length = length, .padding = 3, .segments = true};
    if (separated) o.separator = 7;
    ids got, padding;
    for (const mr::packed& row : rows_of(mr::pack(o).expanding, all)) {
      REQUIRE(row.ids.size() == length);
      for (std::size_t t = 0; t < length; ++t) (row.segments[t] > 0 ? got : padding).push_back(row.ids[t]);
    }
    REQUIRE(got == line);
    REQUIRE(padding == ids(padding.size(), 3));
    REQUIRE(padding.size() < length);
  }
}

TEST_CASE("with the number of buffered tokens it continues as without the interruption, after the first row") {
  std::mt19937 random(6);
  for (int i = 0; i < 200; ++i) {
    const documents all = random_documents(random, 1 + random() % 60);
    const mr::pack_options o{.length = 1 + random() % 20, .separator = 7, .segments = random() % 2 == 0};
    auto unbroken = mr::pack(o).expanding;
    std::vector<mr::packed> before, after, again;
    const auto into = [](std::vector<mr::packed>& rows) {
      return [&rows](mr::packed row) { rows.push_back(std::move(row)); };
    };
    const std::size_t cut = all.empty() ? 0 : random() % all.size();
    auto emit_before = into(before), emit_after = into(after), emit_resumed = into(again);
    for (std::size_t d = 0; d < cut; ++d) unbroken.push(all[d], emit_before);
    auto resumed = mr::pack(o).expanding;
    resumed.restore_fill_level(unbroken.fill_level());
    for (std::size_t d = cut; d < all.size(); ++d) {
      unbroken.push(all[d], emit_after);
      resumed.push(all[d], emit_resumed);
    }
    unbroken.finish(emit_after);
    resumed.finish(emit_resumed);
    REQUIRE(again.size() == after.size());
    for (std::size_t r = 1; r < after.size(); ++r) {
      REQUIRE(again[r].ids == after[r].ids);
      REQUIRE(again[r].segments == after[r].segments);
    }
  }
}

TEST_CASE("best fit: a document is put where the least sufficient space is") {
  const auto rows = rows_of(mr::pack_best_fit({.length = 10, .open_rows = 3}).expanding,
                            {ids(4, 1), ids(7, 2), ids(8, 3), ids(3, 4), ids(2, 5)});
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].ids == ids{2, 2, 2, 2, 2, 2, 2, 4, 4, 4});
  CHECK(rows[1].ids == ids{3, 3, 3, 3, 3, 3, 3, 3, 5, 5});
  CHECK(rows[2].ids == ids{1, 1, 1, 1, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("best fit: no document is cut that fits, every token occurs once, and rows are fuller than in order") {
  std::mt19937 random(7);
  std::size_t best_fit_rows = 0, least_rows = 0;
  for (int i = 0; i < 300; ++i) {
    const documents all = random_documents(random, 1 + random() % 40);
    const std::size_t length = 4 + random() % 20;
    const bool separated = random() % 2;
    mr::pack_best_fit_options o{.length = length, .padding = 3, .segments = true, .positions = true,
                                .open_rows = 1 + random() % 8};
    if (separated) o.separator = 7;
    std::map<std::uint32_t, ids> pieces;   // by their first token
    std::size_t tokens = 0;
    for (const mr::packed& row : rows_of(mr::pack_best_fit(o).expanding, all)) {
      REQUIRE(row.ids.size() == length);
      for (std::size_t t = 0; t < length;) {
        const std::uint32_t segment = row.segments[t];
        ids piece;
        for (; t < length && row.segments[t] == segment; ++t) {
          REQUIRE(row.positions[t] == (segment > 0 ? piece.size() : 0));
          piece.push_back(row.ids[t]);
        }
        if (segment == 0) {
          REQUIRE(t == length);
          REQUIRE(piece == ids(piece.size(), 3));
        } else {
          tokens += piece.size();
          pieces.emplace(piece.front(), std::move(piece));
        }
      }
      ++best_fit_rows;
    }
    std::size_t expected = 0;
    for (const ids& d : all) {
      if (d.empty()) continue;
      expected += d.size() + (separated && d.size() % length != 0);
      ids document;
      for (std::size_t at = 0; at < d.size(); at += length) {
        const bool last = d.size() - at <= length;
        REQUIRE(pieces.count(d[at]) == 1);
        const ids& piece = pieces[d[at]];
        if (!last || !separated) REQUIRE(piece.size() == std::min(length, d.size() - at));
        document.insert(document.end(), piece.begin(), piece.end());
      }
      if (separated && document.size() > d.size()) REQUIRE(document.back() == 7);
      document.resize(d.size());
      REQUIRE(document == d);
    }
    REQUIRE(tokens == expected);
    least_rows += (expected + length - 1) / length;
  }
  CHECK(best_fit_rows < least_rows * 5 / 4);
}

TEST_CASE("items with a cost: bounded rows, every item once, in order or by best fit") {
  struct item {
    std::size_t cost;
    int number;
  };
  const auto cost = [](const item& i) noexcept { return i.cost; };
  const auto pack_items = [](auto packing, const std::vector<item>& items) {
    std::vector<std::vector<item>> rows;
    const auto emit = [&](std::vector<item> row) { rows.push_back(std::move(row)); };
    for (const item& i : items) {
      const std::size_t before = rows.size(), bound = packing.max_outputs(i);
      packing.push(i, emit);
      REQUIRE(rows.size() - before <= bound);
    }
    packing.finish(emit);
    return rows;
  };
  const auto numbers_of = [](const std::vector<std::vector<item>>& rows) {
    std::vector<std::vector<int>> all;
    for (const auto& row : rows) {
      all.emplace_back();
      for (const item& i : row) all.back().push_back(i.number);
    }
    return all;
  };
  using lists = std::vector<std::vector<int>>;
  const std::vector<item> few{{6, 0}, {5, 1}, {4, 2}, {0, 3}, {5, 4}, {10, 5}, {1, 6}};
  CHECK(numbers_of(pack_items(mr::pack(cost, {.max_cost = 10}).expanding, few)) ==
        lists{{0}, {1, 2, 3}, {4}, {5}, {6}});
  CHECK(numbers_of(pack_items(mr::pack_best_fit(cost, {.max_cost = 10}).expanding, few)) ==
        lists{{0, 2}, {1, 3, 4}, {5}, {6}});

  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const std::size_t max_cost = 1 + random() % 50, open = 1 + random() % 5;
    std::vector<item> items(random() % 100);
    for (std::size_t i = 0; i < items.size(); ++i) items[i] = {random() % (max_cost + 1), static_cast<int>(i)};
    for (const bool best : {false, true}) {
      const mr::cost_options o{.max_cost = max_cost, .open_rows = open};
      const auto rows = best ? pack_items(mr::pack_best_fit(cost, o).expanding, items)
                             : pack_items(mr::pack(cost, o).expanding, items);
      std::vector<int> numbers;
      for (const auto& row : rows) {
        std::size_t sum = 0;
        for (const item& i : row) {
          sum += i.cost;
          numbers.push_back(i.number);
        }
        REQUIRE(sum <= max_cost);
        REQUIRE_FALSE(row.empty());
      }
      if (best) std::sort(numbers.begin(), numbers.end());
      REQUIRE(numbers.size() == items.size());
      for (std::size_t i = 0; i < items.size(); ++i) REQUIRE(numbers[i] == static_cast<int>(i));
    }
  }
  CHECK_THROWS_WITH_AS(mr::pack(cost, {}), doctest::Contains("got a max_cost of 0"), mr::setup_error);
  CHECK_THROWS_WITH_AS(pack_items(mr::pack(cost, {.max_cost = 9}).expanding, few),
                       doctest::Contains("got cost 10, expected 0 to max_cost 9"), mr::data_error);
  const auto difference = [](const item& i) { return static_cast<int>(i.cost) - 5; };
  CHECK_THROWS_WITH_AS(pack_items(mr::pack(difference, {.max_cost = 9}).expanding, few),
                       doctest::Contains("got cost -1, expected 0 to max_cost 9"), mr::data_error);
}

TEST_CASE("memory budgets count the items of a list") {
  using document = std::vector<std::uint32_t>;
  const std::vector<document> list(3, document(1'000));
  CHECK(mr::detail::held_bytes_of(list) == sizeof(list) + 3 * (sizeof(document) + 4'000));
  CHECK(mr::detail::held_bytes_of(std::vector<std::vector<document>>(2, list)) >= 24'000);
  CHECK(mr::detail::held_bytes_of(std::vector<document>{}) == sizeof(list));
}
