#include <millrace/simd/byte_marks.hpp>

#include <millrace/base/random.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>

namespace detail = millrace::detail;

TEST_CASE("the marked bytes of 16 and of 32 are found") {
  millrace::rng d({.seed = 7});
  for (int round = 0; round < 2'000; ++round) {
    std::array<std::uint8_t, 32> bytes;
    const auto different = 1 + d.below(40);
    for (auto& b : bytes) b = static_cast<std::uint8_t>(0xff - d.below(different));
    const std::uint8_t value = round % 2 == 0 ? 0xff : 0xf3;
    const auto low = detail::equal_bytes(detail::load_16(bytes.data()), value);
    const auto high = detail::equal_bytes(detail::load_16(bytes.data() + 16), value);
    const auto at = [&](std::size_t from, std::size_t to) {
      return std::find(bytes.begin() + from, bytes.begin() + to, value) - bytes.begin() - from;
    };
    CHECK(detail::first_marked(low) == at(0, 16));
    CHECK(detail::first_marked(high) == at(16, 32));
    CHECK(detail::any_marked(low) == (at(0, 16) < 16));
    if (at(0, 32) < 32) CHECK(detail::first_marked(low, high) == at(0, 32));
    std::array<std::uint8_t, 16> stored;
    detail::store_16(stored.data(), low);
    for (std::size_t i = 0; i < 16; ++i) CHECK(stored[i] == (bytes[i] == value ? 0xff : 0));
  }
}

TEST_CASE("sixteen numbers are compared with one number") {
  millrace::rng d({.seed = 8});
  for (int round = 0; round < 500; ++round) {
    alignas(16) std::array<std::int32_t, 16> numbers;
    for (auto& n : numbers) n = static_cast<std::int32_t>(d.below(1 << 17)) - 100;
    numbers[3] = numbers[9];
    const auto above = detail::numbers_above(numbers.data(), numbers[9]);
    for (std::size_t i = 0; i < 16; ++i) CHECK(above[i] == (numbers[i] > numbers[9] ? 0xff : 0));
  }
}
