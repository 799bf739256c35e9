// Operations on batches in host memory: normalize, mix_pixels and mix_rows.
#include <millrace/base/random.hpp>
#include <millrace/device/mix_rows.hpp>
#include <millrace/device/normalize.hpp>

#include "../image/slow_mixes.hpp"
#include "mixed_batches.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <vector>

namespace mr = millrace;
using namespace mixed_batches;

namespace {

double real(float v) { return v; }
double real(mr::bf16 v) { return std::bit_cast<float>(static_cast<std::uint32_t>(v.bits) << 16); }
double real(mr::f16 v) {
  const int exponent = v.bits >> 10 & 31, fraction = v.bits & 1023;
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return v.bits & 0x8000 ? -magnitude : magnitude;
}

template <class T>
double unit_at(double value) {   // the distance of neighboring numbers of T
  const int digits = std::is_same_v<T, float> ? 24 : std::is_same_v<T, mr::f16> ? 11 : 8;
  const int least = std::is_same_v<T, mr::f16> ? -24 : -149;
  return value == 0 ? std::ldexp(1, least) : std::ldexp(1, std::max(std::ilogb(value) + 1 - digits, least));
}

template <class T>
struct example {
  std::vector<std::uint8_t> in;
  std::vector<T> out;
  mr::tensor_view<const std::uint8_t, 4> pixels;
  mr::tensor_view<T, 4> numbers;
  mr::normalize_options options;

  /// Misaligned by `shift` elements, and followed by a guard of 64 elements.
  example(std::array<std::size_t, 4> shape, bool planar, std::size_t shift, mr::rng& d) {
    const std::size_t count = shape[0] * shape[1] * shape[2] * shape[3];
    in.resize(count + shift);
    for (auto& v : in) v = static_cast<std::uint8_t>(d.below(256));
    out.resize(count + shift + 64);
    std::memset(static_cast<void*>(out.data()), 0x5a, out.size() * sizeof(T));
    pixels = {.data = in.data() + shift, .shape = shape};
    numbers = {.data = out.data() + shift,
               .shape = planar ? std::array{shape[0], shape[3], shape[1], shape[2]} : shape};
    options.layout = planar ? mr::image_layout::nchw : mr::image_layout::nhwc;
    for (std::size_t c = 0; c < 4; ++c) {
      options.mean[c] = d.uniform(0.3, 0.6);
      options.std[c] = d.uniform(0.1, 0.4);
    }
  }
};

}  // namespace

TEST_CASE_TEMPLATE("every path produces the same bits, for all sizes, channels and alignments", T, float, mr::f16,
                   mr::bf16) {
  mr::rng d({.seed = 1});
  for (std::size_t channels = 1; channels <= 4; ++channels)
    for (const bool planar : {false, true})
      for (std::size_t width = 0; width < 70; ++width)
        for (const std::size_t shift : {0, 1, 3, 8}) {
          example<T> e({3, width % 3 + 1, width, channels}, planar, shift, d);
          const auto job = mr::detail::plan_normalize(e.pixels, e.numbers, e.options);
          mr::detail::table_normalizer::run(job);
          const auto expected = e.out;
          std::memset(static_cast<void*>(e.out.data()), 0x5a, e.out.size() * sizeof(T));
          mr::normalize(e.pixels, e.numbers, e.options);
          REQUIRE(std::memcmp(e.out.data(), expected.data(), e.out.size() * sizeof(T)) == 0);
        }
}

TEST_CASE_TEMPLATE("large results, which bypass the cache, have the same bits too", T, float, mr::f16, mr::bf16) {
  mr::rng d({.seed = 2});
  for (const bool planar : {false, true})
    for (const std::size_t width : {1'200, 1'203}) {
      example<T> e({2, 600, width, 3}, planar, 1, d);
      mr::detail::table_normalizer::run(mr::detail::plan_normalize(e.pixels, e.numbers, e.options));
      const auto expected = e.out;
      std::memset(static_cast<void*>(e.out.data()), 0x5a, e.out.size() * sizeof(T));
      mr::normalize(e.pixels, e.numbers, e.options);
      REQUIRE(std::memcmp(e.out.data(), expected.data(), e.out.size() * sizeof(T)) == 0);
    }
}

TEST_CASE_TEMPLATE("results are within a unit in the last place of real numbers", T, float, mr::f16, mr::bf16) {
  mr::rng d({.seed = 3});
  for (const bool planar : {false, true}) {
    example<T> e({2, 16, 24, 3}, planar, 0, d);
    mr::normalize(e.pixels, e.numbers, e.options);
    for (std::size_t b = 0; b < 2; ++b)
      for (std::size_t y = 0; y < 16; ++y)
        for (std::size_t x = 0; x < 24; ++x)
          for (std::size_t c = 0; c < 3; ++c) {
            const double in = e.in[((b * 16 + y) * 24 + x) * 3 + c];
            const double expected = (in / 255 - e.options.mean[c]) / e.options.std[c];
            const double got = real(e.out[planar ? ((b * 3 + c) * 16 + y) * 24 + x : ((b * 16 + y) * 24 + x) * 3 + c]);
            // In f32 the rounded factors matter too: half a unit each of product and bias, which may cancel.
            const double largest = std::max(in / 255, e.options.mean[c]) / e.options.std[c];
            const double allowed = std::is_same_v<T, float> ? 1.5 * unit_at<T>(largest) : unit_at<T>(expected);
            REQUIRE(std::abs(got - expected) <= allowed);
          }
  }
}

TEST_CASE("rounding to f16 and bf16 is to nearest even over the complete range") {
  mr::rng d({.seed = 4});
  for (int i = 0; i < 200'000; ++i) {
    const auto bits = static_cast<std::uint32_t>(d.bits());
    const float value = std::bit_cast<float>(bits & (i % 2 ? 0xfffff000 : 0xffffffff));   // halves are frequent
    if (!std::isfinite(value)) continue;
    if (std::abs(value) < 65'520) {
      const double got = real(mr::detail::to_f16(value));
      const double unit = unit_at<mr::f16>(value);
      REQUIRE(got == std::nearbyint(value / unit) * unit);
    } else {
      REQUIRE((mr::detail::to_f16(value).bits & 0x7fff) == 0x7c00);
    }
    if (std::abs(value) < 3e38F && std::fpclassify(value) == FP_NORMAL) {
      const double unit = unit_at<mr::bf16>(value);
      REQUIRE(real(mr::detail::to_bf16(value)) == std::nearbyint(value / unit) * unit);
    }
  }
}

TEST_CASE("an example calculated manually") {
  std::array<std::uint8_t, 6> in{0, 100, 200, 255, 1, 128};
  std::array<float, 6> out{};
  const mr::tensor_view<const std::uint8_t, 4> pixels{.data = in.data(), .shape = {1, 1, 2, 3}};
  mr::normalize(pixels, mr::tensor_view<float, 4>{.data = out.data(), .shape = {1, 1, 2, 3}},
                {.mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225}});
  const std::array expected{-2.1179039F, -0.28501397F, 1.6813939F, 2.2489083F, -2.0182073F, 0.42649257F};
  for (std::size_t i = 0; i < 6; ++i) CHECK(out[i] == doctest::Approx(expected[i]).epsilon(1e-5));
}

TEST_CASE("invalid calls are refused") {
  std::vector<std::uint8_t> in(100);
  std::vector<float> out(100);
  const auto pixels = [&](std::array<std::size_t, 4> shape) {
    return mr::tensor_view<const std::uint8_t, 4>{.data = in.data(), .shape = shape};
  };
  mr::tensor_view<float, 4> numbers{.data = out.data(), .shape = {1, 3, 4, 5}};
  CHECK_THROWS_AS(mr::normalize(pixels({1, 4, 5, 3}), numbers), mr::setup_error);
  CHECK_NOTHROW(mr::normalize(pixels({1, 4, 5, 3}), numbers, {.layout = mr::image_layout::nchw}));
  CHECK_THROWS_AS(mr::normalize(pixels({1, 3, 4, 5}), numbers), mr::setup_error);
  for (const double bad : {0.0, -1.0, 1e-300, std::nan("")})
    CHECK_THROWS_AS(
        mr::normalize(pixels({1, 4, 5, 3}), numbers, {.std = {1, bad, 1, 1}, .layout = mr::image_layout::nchw}),
        mr::setup_error);
  numbers.memory = mr::memory_kind::device;
  numbers.name = "pixels";
  CHECK_THROWS_AS(mr::normalize(pixels({1, 4, 5, 3}), numbers, {.layout = mr::image_layout::nchw}), mr::setup_error);
}

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
  else return mr::detail::half_element<T>(static_cast<float>(random.uniform(-3, 3)));
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
          v = mr::detail::half_element<T>(sign * magnitude);
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
