#include <millrace/item/tensor.hpp>

#include <doctest/doctest.h>

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

TEST_CASE("a view that may be written through is taken where one that only reads is wanted, and not the other way") {
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
