#include <millrace/base/random.hpp>
#include <millrace/device/normalize.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace mr = millrace;

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
