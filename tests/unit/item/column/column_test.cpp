// Columns: members of aggregates, compared with explicit lists; places of lists; and ragged columns.
#include <millrace/base/random.hpp>
#include <millrace/item/column/column_place.hpp>
#include <millrace/item/column/columns.hpp>
#include <millrace/item/column/member.hpp>
#include <millrace/item/tensor/ragged.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace mr = millrace;
using mr::detail::member_at;
using mr::detail::member_count;

namespace {

struct hidden {
  std::int32_t only;
};

}  // namespace

namespace outer {

struct pair_of_numbers {
  std::int32_t first;
  double second;
};

}  // namespace outer

namespace {

struct not_default {
  explicit not_default(int) {}
};
struct mixed_members {
  not_default a;
  std::array<std::vector<float>, 3> b;
  std::string c;
  std::unique_ptr<int> d;
  std::span<const int> e;
  std::optional<int> f;
  std::variant<int, float> g;
  std::function<void()> h;
};
struct sixteen {
  int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p;
};
struct seventeen {
  int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q;
};
struct with_array {
  int a[3];
  int b;
};
struct with_array_at_end {
  not_default a;
  int b[2];
};
struct with_base : outer::pair_of_numbers {
  int c;
};
struct with_private {
  int a;

 private:
  [[maybe_unused]] int b = 0;
};
struct with_initializers {
  int a = 3;
  std::vector<int> b{1, 2};
};
struct same_types {
  std::int32_t a, b;
};

template <auto M>
std::string spelling() {
  return mr::detail::member_spelling<M>.data();
}
template <class Item, std::size_t... Index>
std::vector<const void*> addresses(const Item& item, std::index_sequence<Index...>) {
  return {std::addressof(mr::detail::member_of<member_at<Item, Index>{}>(item))...};
}

}  // namespace

TEST_CASE("the members of an aggregate are counted") {
  CHECK(member_count<hidden>() == 1);
  CHECK(member_count<outer::pair_of_numbers>() == 2);
  CHECK(member_count<mixed_members>() == 8);
  CHECK(member_count<sixteen>() == 16);
  CHECK(member_count<with_initializers>() == 2);
}

TEST_CASE("types whose members cannot be listed have none") {
  CHECK(member_count<seventeen>() == 0);
  CHECK(member_count<with_array>() == 0);
  CHECK(member_count<with_array_at_end>() == 0);
  CHECK(member_count<with_base>() == 0);
  CHECK(member_count<with_private>() == 0);
  CHECK(member_count<std::string>() == 0);
  CHECK(member_count<int>() == 0);
  CHECK(member_count<int[3]>() == 0);
}

TEST_CASE("members by their number are those by their names") {
  const mixed_members m{.a = not_default(1), .b = {}, .c = "c", .d = {}, .e = {}, .f = 2, .g = 3, .h = {}};
  CHECK(addresses(m, std::make_index_sequence<8>{}) ==
        std::vector<const void*>{&m.a, &m.b, &m.c, &m.d, &m.e, &m.f, &m.g, &m.h});
  const sixteen s{};
  const auto all = addresses(s, std::make_index_sequence<16>{});
  CHECK(all.front() == &s.a);
  CHECK(all[9] == &s.j);
  CHECK(all.back() == &s.p);
}

TEST_CASE("a number and a pointer name the same member, and no other") {
  using mr::detail::same_member;
  CHECK(same_member<&same_types::a, member_at<same_types, 0>{}>());
  CHECK(same_member<member_at<same_types, 1>{}, &same_types::b>());
  CHECK(!same_member<&same_types::a, member_at<same_types, 1>{}>());
  CHECK(!same_member<member_at<same_types, 0>{}, &same_types::b>());
  CHECK(!same_member<&same_types::a, &same_types::b>());
  CHECK(same_member<member_at<same_types, 1>{}, member_at<same_types, 1>{}>());
  CHECK(!same_member<member_at<same_types, 1>{}, member_at<sixteen, 1>{}>());
  CHECK(!same_member<&hidden::only, member_at<same_types, 0>{}>());
  CHECK(mr::detail::index_of_member<&sixteen::j, member_at<sixteen, 3>{}, member_at<sixteen, 9>{}>() == 1);
  CHECK(mr::detail::index_of_member<&sixteen::a, member_at<sixteen, 3>{}, member_at<sixteen, 9>{}>() == 2);
  CHECK(mr::detail::index_of_member<1, member_at<sixteen, 3>{}, member_at<sixteen, 9>{}>() == 1);
  CHECK(mr::detail::index_of_member<2, member_at<sixteen, 3>{}, member_at<sixteen, 9>{}>() == 2);
}

TEST_CASE("a member has the same name by its number and by a pointer") {
  CHECK(spelling<member_at<outer::pair_of_numbers, 1>{}>() == spelling<&outer::pair_of_numbers::second>());
  CHECK(spelling<member_at<hidden, 0>{}>() == spelling<&hidden::only>());
  CHECK(spelling<member_at<sixteen, 15>{}>() == spelling<&sixteen::p>());
  CHECK(spelling<member_at<mixed_members, 1>{}>() == spelling<&mixed_members::b>());
  // Joined tests compile several files together, each in its own namespace.
  CHECK(spelling<&outer::pair_of_numbers::second>().ends_with("outer::pair_of_numbers::second"));
  CHECK(spelling<member_at<hidden, 0>{}>().ends_with("hidden::only"));
  CHECK(mr::detail::without_anonymous("(anonymous namespace)::hidden::only") == "hidden::only");
  CHECK(mr::detail::without_anonymous("{anonymous}::hidden::only") == "hidden::only");
}

// Places of the rows of lists: rows that are added in order get their final places; rows in any order never overlap,
// never precede their final places, and never exceed the space of the batch.

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

// Ragged columns without an engine: the content of a closed slot, element by element.

namespace {

struct example {
  mr::ragged<std::uint32_t> words;
  std::int64_t number;
  mr::ragged<float, 2> boxes;
  mr::ragged<std::int16_t> sound;
  std::array<std::uint8_t, 3> color;
};
using layout = mr::detail::columns<&example::words, &example::number, &example::boxes, &example::sound,
                                   &example::color>;

struct one {
  mr::ragged<float> a;
};

struct options {
  mr::ragged_options<std::uint32_t> words{};
  mr::ragged_options<float> boxes{};
  mr::ragged_options<std::int16_t> sound{};
};

example random_example(std::mt19937& random, const options& o) {
  std::vector<std::uint32_t> words(random() % (o.words.max_length + 1));
  for (auto& w : words) w = static_cast<std::uint32_t>(random());
  mr::tensor<float, 2> boxes({random() % (o.boxes.max_length + 1), 4});
  for (float& b : boxes.span()) b = static_cast<float>(random() % 1000);
  std::vector<std::int16_t> sound(random() % (o.sound.max_length + 1));
  for (auto& s : sound) s = static_cast<std::int16_t>(random());
  return {mr::ragged(words, o.words), static_cast<std::int64_t>(random()), mr::ragged(boxes, o.boxes),
          mr::ragged(sound, o.sound), {static_cast<std::uint8_t>(random()), 1, 2}};
}

/// The expected rows of a column, computed in the slow and obvious way.
template <class Column>
struct rectangle {
  std::vector<typename Column::element> values{};
  std::vector<std::int32_t> lengths{};
  std::size_t longest = 0;
};
template <class Column>
rectangle<Column> padded(const std::vector<example>& items, Column example::*member) {
  rectangle<Column> r;
  std::size_t inner = 1;
  for (const example& e : items) {
    const Column& row = e.*member;
    r.lengths.push_back(static_cast<std::int32_t>(row.length()));
    r.longest = std::max(r.longest, row.length());
    if constexpr (Column::rank == 2) inner = row.shape()[1];
  }
  const auto& o = (items.front().*member).options();
  while (r.longest % o.multiple_of != 0 && r.longest < o.max_length) ++r.longest;
  if (o.fixed) r.longest = o.max_length;
  for (const example& e : items)
    for (std::size_t i = 0; i < r.longest * inner; ++i) {
      const auto elements = (e.*member).elements();
      r.values.push_back(i < elements.size() ? elements[i] : o.padding);
    }
  return r;
}

template <auto M>
void check_column(const layout& l, const layout::delivered& b, const std::vector<example>& items) {
  const auto expected = padded(items, M);
  const auto [values, lengths] = l.view<M>(b);
  REQUIRE(values.shape[0] == items.size());
  REQUIRE(values.shape[1] == expected.longest);
  REQUIRE(std::vector(values.host().begin(), values.host().end()) == expected.values);
  REQUIRE(std::vector(lengths.host().begin(), lengths.host().end()) == expected.lengths);
}

}  // namespace

TEST_CASE("a closed slot stores each ragged column as a rectangle, and the others untouched") {
  std::mt19937 random(11);
  for (int turn = 0; turn < 400; ++turn) {
    const options o{.words = {.max_length = 1 + random() % 40, .padding = 7, .fixed = random() % 3 == 0},
                    .boxes = {.max_length = 1 + random() % 9, .padding = -1, .fixed = random() % 3 == 0,
                              .multiple_of = 1 + random() % 5},
                    .sound = {.max_length = 1 + random() % 90, .fixed = random() % 3 == 0}};
    const std::size_t rows = 1 + random() % 7, there = random() % (rows + 1);
    layout l;
    l.fix_shapes(random_example(random, o), rows);
    std::vector<std::byte> slot(l.batch_bytes(), std::byte{0xaa});
    mr::scratch memory;
    std::vector<example> items;
    for (std::size_t i = 0; i < there; ++i) items.push_back(random_example(random, o));
    for (std::size_t i = there; i-- > 0;) {   // in any order
      l.check_shapes(items[i]);
      const example* const one[] = {&items[i]};
      l.render(one, slot.data(), i, memory);
    }
    const mr::detail::slot_extent extent = l.close(slot.data(), there);
    REQUIRE(extent.used_bytes <= slot.size());
    if (there == 0) continue;
    // A device gets the used part, and nothing else.
    std::vector<std::byte> copy(extent.used_bytes);
    std::copy_n(slot.begin(), copy.size(), copy.begin());
    const layout::delivered b{.base = copy.data(), .rows = there, .extent = extent};
    check_column<&example::words>(l, b, items);
    check_column<&example::boxes>(l, b, items);
    check_column<&example::sound>(l, b, items);
    for (std::size_t i = 0; i < there; ++i) {
      REQUIRE(l.view<&example::number>(b).host()[i] == items[i].number);
      REQUIRE(l.view<&example::color>(b).host()[3 * i] == items[i].color[0]);
    }
  }
}

TEST_CASE("a row longer than max_length is an error or loses its end") {
  const std::vector<std::uint32_t> five{1, 2, 3, 4, 5};
  CHECK(mr::ragged(five, {.max_length = 5}).length() == 5);
  CHECK_THROWS_WITH_AS(mr::ragged(five, {.max_length = 4}),
                       doctest::Contains("got length 5, expected at most max_length 4"), mr::data_error);
  const auto cut = mr::ragged(five, {.max_length = 4, .truncate = true});
  CHECK(std::vector(cut.elements().begin(), cut.elements().end()) == std::vector<std::uint32_t>{1, 2, 3, 4});
  mr::tensor<float, 2> boxes({3, 2});
  boxes(1, 1) = 5;
  const auto two = mr::ragged(boxes, {.max_length = 2, .truncate = true});
  CHECK(two.length() == 2);
  CHECK(two.elements().size() == 4);
  CHECK(two.elements()[3] == 5);
  CHECK(two.shape() == std::array<std::size_t, 2>{2, 2});
  CHECK_THROWS_WITH_AS(mr::ragged(five, {}), doctest::Contains("max_length 0"), mr::setup_error);
  CHECK_THROWS_AS(mr::ragged(five, {.max_length = 9, .multiple_of = 0}), mr::setup_error);
}

TEST_CASE("all samples of a run have the options of the first") {
  mr::detail::columns<&one::a> l;
  l.fix_shapes({mr::ragged(std::vector<float>(3), {.max_length = 8})}, 2);
  CHECK(l.describe().ends_with("one::a up to [2, 8] f32"));
  CHECK_NOTHROW(l.check_shapes({mr::ragged(std::vector<float>(8), {.max_length = 8})}));
  CHECK_THROWS_WITH_AS(l.check_shapes({mr::ragged(std::vector<float>(3), {.max_length = 8, .padding = 2})}),
                       doctest::Contains("one::a has max_length 8, padding 2"), mr::data_error);
  CHECK_THROWS_WITH_AS(l.fix_shapes({}, 2), doctest::Contains("in the first sample of the run has no options"),
                       mr::data_error);
}
