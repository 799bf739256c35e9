// Ragged columns without an engine: the content of a closed slot, element by element.
#include <millrace/item/column/columns.hpp>
#include <millrace/item/tensor/ragged.hpp>

#include <doctest/doctest.h>

#include <random>

namespace mr = millrace;

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
    const mr::detail::batch_extent extent = l.close(slot.data(), there);
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
