// Places of the rows of lists: rows that are added in order get their final places; rows in any order never overlap,
// never precede their final places, and never exceed the space of the batch.
#include <doctest/doctest.h>

#include <millrace/base/random.hpp>
#include <millrace/item/column/column_place.hpp>

#include <algorithm>
#include <array>
#include <vector>

namespace mr = millrace;

namespace {

constexpr std::size_t list_rows = 24, longest_list = 5, rows_of_group = 3;

/// Adds the groups of rows in an order, and checks all places.
void check_list_places(mr::detail::list_places& places, const std::vector<std::uint32_t>& lengths,
                       const std::vector<std::size_t>& groups, bool in_order) {
  places.clear();
  for (const std::size_t group : groups)
    places.add(group * rows_of_group, std::span(lengths).subspan(group * rows_of_group, rows_of_group));
  std::size_t end = 0, total = 0;
  for (std::size_t row = 0; row < lengths.size(); ++row) {
    REQUIRE(places.of(row) >= end);
    REQUIRE(places.of(row) >= total);
    if (in_order) REQUIRE(places.of(row) == total);
    end = places.of(row) + lengths[row];
    total += lengths[row];
    REQUIRE(end <= (row + 1) * longest_list);
  }
}

}  // namespace

TEST_CASE("rows of lists get their final places in order, and places that do not overlap in any other order") {
  mr::detail::list_places places(list_rows, longest_list);
  mr::rng random({.seed = 3});
  std::vector<std::size_t> groups(list_rows / rows_of_group);
  for (int round = 0; round < 500; ++round) {
    std::vector<std::uint32_t> lengths;
    for (std::size_t i = 0; i < list_rows; ++i)
      lengths.push_back(static_cast<std::uint32_t>(random.below(round % 3 == 0 ? 2 : longest_list + 1)));
    for (std::size_t i = 0; i < groups.size(); ++i) groups[i] = i;
    check_list_places(places, lengths, groups, true);
    for (std::size_t i = groups.size(); i > 1; --i) std::swap(groups[i - 1], groups[random.below(i)]);
    check_list_places(places, lengths, groups, false);
  }
}

TEST_CASE("a row of lists follows the space of the unknown rows between it and the last known row") {
  mr::detail::list_places places(8, 4);
  const std::array<std::uint32_t, 2> two{3, 1}, more{2, 2};
  places.add(4, two);
  CHECK(places.of(4) == 16);
  CHECK(places.of(5) == 19);
  places.add(0, more);
  CHECK(places.of(1) == 2);
  places.add(6, more);
  CHECK(places.of(6) == 20);
  places.add(2, more);
  CHECK(places.of(2) == 4);
  CHECK(places.of(3) == 6);
}
