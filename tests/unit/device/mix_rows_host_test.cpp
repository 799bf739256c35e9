#include <millrace/base/random.hpp>
#include <millrace/device/mix_rows.hpp>

#include "../image/slow_mixes.hpp"
#include "mixed_batches.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstring>

namespace mr = millrace;
using namespace mixed_batches;

TEST_CASE_TEMPLATE("the rows of a batch are mixed in place as a slow loop does it, and copies follow", T, std::uint8_t,
                   float, mr::f16, mr::bf16) {
  mr::rng random({.seed = 11});
  for (int round = 0; round < 200; ++round) {
    batch<T> b(random.below(20), {1 + random.below(9), 1 + random.below(9), 1 + random.below(4)}, random.chance(0.5),
               random);
    const mr::tensor_view<T, 4> rows{.data = b.rows.data(), .shape = b.shape()};
    const mr::tensor_view<const mr::row_mix, 1> mixes{.data = b.mixes.data(), .shape = {b.mixes.size()}};
    mr::mix_rows(rows, mixes, b.layout());
    REQUIRE(b.rows.size() == b.expected.size());
    REQUIRE((b.rows.empty() || std::memcmp(b.rows.data(), b.expected.data(), b.rows.size() * sizeof(T)) == 0));
  }
}

TEST_CASE("without a layout bytes are NHWC and numbers NCHW, and rows of two dimensions are images too") {
  mr::rng random({.seed = 12});
  batch<std::uint8_t> bytes(8, {4, 6, 3}, false, random);
  mr::mix_rows(mr::tensor_view<std::uint8_t, 4>{.data = bytes.rows.data(), .shape = bytes.shape()},
               mr::tensor_view<const mr::row_mix, 1>{.data = bytes.mixes.data(), .shape = {8}});
  CHECK(bytes.rows == bytes.expected);
  batch<mr::f16> numbers(8, {4, 6, 3}, true, random);
  mr::mix_rows(mr::tensor_view<mr::f16, 4>{.data = numbers.rows.data(), .shape = numbers.shape()},
               mr::tensor_view<const mr::row_mix, 1>{.data = numbers.mixes.data(), .shape = {8}});
  CHECK(numbers.rows == numbers.expected);
  batch<float> gray(8, {5, 3, 1}, false, random);
  mr::mix_rows(mr::tensor_view<float, 3>{.data = gray.rows.data(), .shape = {8, 5, 3}},
               mr::tensor_view<const mr::row_mix, 1>{.data = gray.mixes.data(), .shape = {8}});
  CHECK(gray.rows == gray.expected);
}

TEST_CASE("dense labels are those of timm's mixup_target") {
  mr::rng random({.seed = 13});
  for (const double smoothing : {0.0, 0.1, 1.0}) {
    const std::size_t classes = 7;
    const labels l(64, classes, random);
    mr::tensor<float, 2> dense({64, classes});
    mr::dense_labels(l.views(), dense.view(), {.smoothing = smoothing});
    const double off = smoothing / double(classes), on = 1 - smoothing + off;
    for (std::size_t i = 0; i < 64; ++i)
      for (std::size_t k = 0; k < classes; ++k) {
        const double of_a = l.a[i] == int(k) ? on : off, of_b = l.b[i] == int(k) ? on : off;
        const double expected = of_a * double(l.lambda[i]) + of_b * (1 - double(l.lambda[i]));
        REQUIRE(double(dense(i, k)) == doctest::Approx(expected).epsilon(1e-6));
      }
  }
}

TEST_CASE("arguments that do not fit together are refused") {
  mr::rng random({.seed = 14});
  batch<float> b(4, {2, 2, 3}, true, random);
  const mr::tensor_view<float, 4> rows{.data = b.rows.data(), .shape = b.shape()};
  const mr::tensor_view<const mr::row_mix, 1> mixes{.data = b.mixes.data(), .shape = {4}};
  auto fewer = mixes;
  fewer.shape[0] = 3;
  CHECK_THROWS_WITH_AS(mr::mix_rows(rows, fewer), doctest::Contains("rows of shape [4, 3, 2, 2] and 3 row_mixes"),
                       mr::setup_error);
  auto on_device = rows;
  on_device.memory = mr::memory_kind::device;
  CHECK_THROWS_AS(mr::mix_rows(on_device, mixes), mr::setup_error);
  labels l(4, 10, random);
  mr::tensor<float, 2> dense({4, 10}), short_one({3, 10}), empty({4, 0});
  CHECK_THROWS_AS(mr::dense_labels(l.views(), short_one.view()), mr::setup_error);
  CHECK_THROWS_AS(mr::dense_labels(l.views(), empty.view()), mr::setup_error);
  CHECK_THROWS_AS(mr::dense_labels(l.views(), dense.view(), {.smoothing = -0.1}), mr::setup_error);
  l.b[2] = 10;
  CHECK_THROWS_WITH_AS(mr::dense_labels(l.views(), dense.view()),
                       doctest::Contains("got 10 in row 2, expected 0 to 9"), mr::data_error);
  l.b[2] = -1;
  CHECK_THROWS_AS(mr::dense_labels(l.views(), dense.view()), mr::data_error);
}

namespace {

template <class T>
T random_element(mr::rng& random) {
  if constexpr (std::is_same_v<T, std::uint8_t>) return static_cast<T>(random.below(256));
  else return mr::detail::to_element<T>(static_cast<float>(random.uniform(-3, 3)));
}

template <class T>
std::vector<T> random_row(std::size_t count, mr::rng& random) {
  std::vector<T> row(count);
  for (T& v : row) v = random_element<T>(random);
  return row;
}

template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace

TEST_CASE("all bytes with all others produce the formula's bytes, by every path") {
  std::vector<std::uint8_t> a(65'536), b(65'536);
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<std::uint8_t>(i / 256);
    b[i] = static_cast<std::uint8_t>(i);
  }
  for (const std::uint32_t weight : {0U, 2U, 4U, 254U, 256U, 258U, 21'846U, 32'766U, 32'768U, 32'770U, 43'690U, 65'278U,
                                     65'280U, 65'532U, 65'534U, 65'536U}) {
    CAPTURE(weight);
    auto first = a, second = b, slow_first = a, slow_second = b;
    mr::detail::mix_elements(first.data(), second.data(), first.size(), mr::detail::mix_weights(weight));
    for (std::size_t i = 0; i < a.size(); ++i) {
      slow_first[i] = slow_mixes::mixed(a[i], b[i], weight);
      slow_second[i] = slow_mixes::mixed(b[i], a[i], weight);
      REQUIRE(mr::detail::mixed_element(a[i], b[i], mr::detail::mix_weights(weight)) == slow_first[i]);
    }
    CHECK(same(first, slow_first));
    CHECK(same(second, slow_second));
  }
}

TEST_CASE("numbers of all magnitudes produce the bits of the formula, by every path") {
  const auto check = []<class T>(std::type_identity<T>) {
    mr::rng random({.seed = 4});
    for (int round = 0; round < 40; ++round) {
      std::vector<T> a(4'003), b(4'003);
      for (auto* const row : {&a, &b})
        for (T& v : *row) {
          const float sign = random.chance(0.5) ? 1.0F : -1.0F;
          const auto exponent = static_cast<int>(random.between(-30, 14));
          const float magnitude = std::ldexp(1 + static_cast<float>(random.uniform()), exponent);
          v = mr::detail::to_element<T>(sign * magnitude);
        }
      const auto weight = static_cast<std::uint32_t>(2 * random.below(32'769));
      auto first = a, second = b, slow_first = a, slow_second = b;
      mr::detail::mix_elements(first.data(), second.data(), first.size(), mr::detail::mix_weights(weight));
      for (std::size_t i = 0; i < a.size(); ++i) {
        slow_first[i] = weight == 65'536 ? a[i] : slow_mixes::mixed(a[i], b[i], weight);
        slow_second[i] = weight == 65'536 ? b[i] : slow_mixes::mixed(b[i], a[i], weight);
      }
      REQUIRE(same(first, slow_first));
      REQUIRE(same(second, slow_second));
    }
  };
  check(std::type_identity<float>{});
  check(std::type_identity<mr::f16>{});
  check(std::type_identity<mr::bf16>{});
}

TEST_CASE_TEMPLATE("two rows of any size are mixed as pixel by pixel, and nothing outside them", T, std::uint8_t, float,
                   mr::f16, mr::bf16) {
  mr::rng random({.seed = 6});
  for (int round = 0; round < 600; ++round) {
    const bool planar = random.chance(0.5);
    const std::size_t height = 1 + random.below(20), width = 1 + random.below(40), channels = 1 + random.below(4);
    const std::size_t count = height * width * channels;
    const mr::detail::row_grid grid{.planes = planar ? channels : 1, .height = height, .width = width,
                                    .channels = planar ? 1 : channels};
    slow_mixes::pair_mix d{.mixes = true};
    mr::row_mix how;
    if (random.chance(0.5)) {
      how.weight = static_cast<std::uint32_t>(2 * random.below(32'769));
      d.weight = how.weight;
    } else {
      const auto ends = [&](std::size_t side, std::uint16_t& begin, std::uint16_t& end) {
        begin = static_cast<std::uint16_t>(random.below(side + 1));
        end = static_cast<std::uint16_t>(begin + random.below(side + 1 - begin));
      };
      ends(height, how.top, how.bottom);
      ends(width, how.left, how.right);
      d.left = how.left, d.right = how.right, d.top = how.top, d.bottom = how.bottom;
    }
    const std::size_t shift = random.below(4);
    auto first = random_row<T>(count + 2 * shift, random), second = random_row<T>(count + 2 * shift, random);
    auto expected_first = first, expected_second = second;
    std::vector<T> a(first.begin() + static_cast<long>(shift), first.end() - static_cast<long>(shift));
    std::vector<T> b(second.begin() + static_cast<long>(shift), second.end() - static_cast<long>(shift));
    if (d.weight != 65'536 || how.left < how.right)
      slow_mixes::mix(d, a, b, static_cast<long>(height), static_cast<long>(width), planar);
    std::copy(a.begin(), a.end(), expected_first.begin() + static_cast<long>(shift));
    std::copy(b.begin(), b.end(), expected_second.begin() + static_cast<long>(shift));
    mr::detail::mix_pixels(first.data() + shift, second.data() + shift, grid, how);
    REQUIRE(same(first, expected_first));
    REQUIRE(same(second, expected_second));
  }
}
