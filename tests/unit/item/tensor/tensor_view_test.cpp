#include <millrace/item/tensor/tensor_view.hpp>
#include <millrace/item/tensor/tensor.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <ranges>
#include <type_traits>
#include <vector>

namespace mr = millrace;

namespace {

std::int32_t sum_of(mr::tensor_view<const std::int32_t, 2> numbers) {
  std::int32_t sum = 0;
  for (const std::int32_t n : numbers.host()) sum += n;
  return sum;
}

}  // namespace

TEST_CASE("a writable view converts to a read-only one, and not the other way") {
  std::vector<std::int32_t> numbers{1, 2, 3, 4, 5, 6};
  const mr::tensor_view<std::int32_t, 2> view{.data = numbers.data(), .shape = {2, 3}, .name = "example::label"};
  CHECK(sum_of(view) == 21);
  const mr::tensor_view<const std::int32_t, 2> reading = view;
  CHECK(reading.data == numbers.data());
  CHECK(reading.shape == view.shape);
  CHECK(reading.name == view.name);
  const mr::tensor_view<const std::int32_t, 2> on_device =
      mr::tensor_view<std::int32_t, 2>{.data = numbers.data(), .shape = {2, 3}, .memory = mr::memory_kind::device};
  CHECK_THROWS_AS(on_device.host(), mr::setup_error);
  CHECK_FALSE(std::is_convertible_v<mr::tensor_view<const std::int32_t, 2>, mr::tensor_view<std::int32_t, 2>>);
}

TEST_CASE("elements of views and of tensors are read and written by [] and (), and loops go through them") {
  mr::tensor<std::int32_t, 3> numbers({2, 3, 4});
  static_assert(std::is_same_v<decltype(numbers.view()[0][0][0]), std::int32_t&>);
  static_assert(std::is_same_v<decltype(std::as_const(numbers)[0][0][0]), const std::int32_t&>);
  static_assert(std::is_same_v<decltype(numbers[0]), mr::tensor_view<std::int32_t, 2>>);
  static_assert(std::is_same_v<decltype(std::as_const(numbers)[0]), mr::tensor_view<const std::int32_t, 2>>);
  std::iota(numbers.span().begin(), numbers.span().end(), 0);
  numbers[1][2][3] += 100;
  numbers.view()(0, 1, 2) = -1;
  CHECK(numbers(1, 2, 3) == 123);
  CHECK(numbers.span()[6] == -1);
  CHECK(std::as_const(numbers)[1](0, 2) == 14);
  std::int32_t rows = 0, sum = 0;
  for (const auto picture : std::as_const(numbers))
    for (const auto row : picture) {
      CHECK(row.data == &numbers(static_cast<std::size_t>(rows / 3), static_cast<std::size_t>(rows % 3), 0));
      ++rows;
      for (const std::int32_t n : row) sum += n;
    }
  CHECK(rows == 6);
  CHECK(sum == 23 * 12 + 100 - 7);

  mr::tensor<std::int32_t, 1> labels({3});
  labels[2] = 5;
  for (std::int32_t& label : labels) ++label;
  CHECK(labels(2) == 6);
  CHECK(std::as_const(labels)[0] == 1);
  const mr::tensor_view<std::int32_t, 1> view = labels.view();
  view[1] = 7;
  CHECK(std::ranges::max(view) == 7);
  CHECK(*std::max_element(view.begin(), view.end()) == 7);
}

TEST_CASE("views are ranges: of elements, which form a span, and of rows, also in a batch without elements") {
  using one = mr::tensor_view<std::int32_t, 1>;
  using three = mr::tensor_view<std::int32_t, 3>;
  static_assert(std::ranges::contiguous_range<one> && std::ranges::sized_range<one> && std::ranges::view<one>);
  static_assert(std::ranges::forward_range<three> && std::ranges::view<three> && std::ranges::borrowed_range<three>);
  static_assert(!std::ranges::sized_range<three> && !std::ranges::sized_range<mr::tensor<float, 2>>);
  static_assert(std::is_aggregate_v<one> && std::is_trivially_copyable_v<one>);
  static_assert(std::is_constructible_v<std::span<const std::int32_t>, one>);
  static_assert(!std::is_constructible_v<std::span<std::int32_t>, three>);   // not for rows: use span()
  mr::tensor<std::int32_t, 2> numbers({2, 3});
  const std::span<const std::int32_t> row = numbers.view()[1];
  CHECK(row.data() == numbers.data() + 3);
  CHECK(numbers.view().span().size() == 6);
  const mr::tensor<float, 2> nothing({4, 0});
  CHECK(std::ranges::distance(nothing.begin(), nothing.end()) == 4);
}

TEST_CASE("a row of a padded column can be read without its padding") {
  std::vector<std::int32_t> values{1, 2, 3, 4, 0, 0}, lengths{3, 1};
  mr::padded_view<std::int32_t, 2> words{.values = {.data = values.data(), .shape = {2, 3}, .name = "pair::words"},
                                         .lengths = {.data = lengths.data(), .shape = {2}, .name = "pair::words"}};
  CHECK(std::ranges::equal(words[0], std::vector{1, 2, 3}));
  CHECK(std::ranges::equal(words[1], std::vector{4}));
  words.values.memory = words.lengths.memory = mr::memory_kind::device;
  CHECK_THROWS_WITH_AS(words[0], doctest::Contains("the column pair::words is in GPU memory"),
                       mr::detail::bad_element_access);
}

#ifndef NDEBUG
TEST_CASE("in debug builds an access out of range is an error that names the column") {
  std::vector<float> numbers(6);
  mr::tensor_view<float, 2> view{.data = numbers.data(), .shape = {2, 3}, .name = "example::box"};
  const char* const third = "an index of the column example::box is out of range: got 3, expected less than 3";
  const char* const second = "an index of the column example::box is out of range: got 2, expected less than 2";
  CHECK_THROWS_WITH_AS(view(1, 3), doctest::Contains(third), mr::detail::bad_element_access);
  CHECK_THROWS_WITH_AS(view[1][3], doctest::Contains(third), mr::detail::bad_element_access);
  CHECK_THROWS_WITH_AS(view(2, 0), doctest::Contains(second), mr::detail::bad_element_access);
  CHECK_THROWS_WITH_AS(view[2], doctest::Contains(second), mr::detail::bad_element_access);
  CHECK_THROWS_WITH_AS(view(-1, 0), doctest::Contains("got 18446744073709551615, expected"),
                       mr::detail::bad_element_access);
  mr::tensor<float, 1> alone({3});
  CHECK_THROWS_WITH_AS(alone[3], doctest::Contains("an index of the tensor is out of range: got 3"),
                       mr::detail::bad_element_access);

  view.memory = mr::memory_kind::device;
  const char* const elsewhere = "the column example::box is in GPU memory";
  CHECK_THROWS_WITH_AS(view(0, 0), doctest::Contains(elsewhere), mr::detail::bad_element_access);
  CHECK_THROWS_WITH_AS(view[1][0], doctest::Contains(elsewhere), mr::detail::bad_element_access);
  CHECK_THROWS_WITH_AS(view[1].begin(), doctest::Contains(elsewhere), mr::detail::bad_element_access);
  CHECK(view[1].data == numbers.data() + 3);   // its rows are ordinary views
  CHECK((*++view.begin()).memory == mr::memory_kind::device);
}
#endif
