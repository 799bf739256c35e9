#include "mixed_batches.hpp"

#include <doctest/doctest.h>

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
