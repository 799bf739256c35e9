#include <millrace/device/normalize.hpp>
#include <millrace/image/resize/plane_kernels.hpp>
#include <millrace/image/resize/plane_resizer.hpp>
#include <millrace/image/resize/rgb_rows.hpp>

#include "../../../thorough.hpp"
#include "resize_cases.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <type_traits>

namespace mr = millrace;

namespace {

using portable = mr::detail::basic_plane_resizer<mr::detail::portable_plane_kernels>;

bool same(const mr::image& a, const mr::image& b) {
  return a.shape() == b.shape() && std::equal(a.span().begin(), a.span().end(), b.span().begin());
}

}  // namespace

TEST_CASE("exact: planes equal decode, crop, resize and flip in real numbers, within one level") {
  mr::detail::plane_resizer r;
  const auto d = slow::check_exact(r, 600 / stride(6));
  CHECK(d.max <= 1);
  CHECK(d.mean < 0.012);
}

TEST_CASE("fast: planes equal resized planes in real numbers, within one level") {
  mr::detail::plane_resizer r;
  const auto d = slow::check_fast(r, 600 / stride(6));
  CHECK(d.max <= 1);
  CHECK(d.mean < 0.015);
}

TEST_CASE("portable and vector kernels compute the same bits, in registers of every width") {
  portable plain;
  mr::detail::plane_resizer narrow(false), detected;
  for (std::uint64_t i = 0; i < 600 / stride(6); ++i) {
    const auto c = slow::random_case(i);
    slow::stored_planes planes(c.file);
    for (const bool fast : {false, true}) {
      CAPTURE(i);
      CAPTURE(fast);
      const auto expected = slow::render(plain, c, planes, fast);
      REQUIRE(same(slow::render(narrow, c, planes, fast), expected));
      REQUIRE(same(slow::render(detected, c, planes, fast), expected));
    }
  }
}

TEST_CASE("a flipped result is the mirrored result") {
  mr::detail::plane_resizer r;
  for (std::uint64_t i = 0; i < 200; ++i) {
    auto c = slow::random_case(i);
    slow::stored_planes planes(c.file);
    for (const bool fast : {false, true}) {
      c.flipped = false;
      const auto plain = slow::render(r, c, planes, fast);
      c.flipped = true;
      CAPTURE(i);
      REQUIRE(same(slow::render(r, c, planes, fast), slow::flip(plain)));
    }
  }
}

TEST_CASE("rows from libjpeg become the same bits as its planes") {
  portable plain;
  mr::detail::plane_resizer detected;
  const auto from_rows = [](auto& r, const slow::resize_case& c, const mr::image& full) {
    mr::image pixels({c.rows, c.columns, 3});
    r.start({.plan = c.plan(), .target = {.data = pixels.data()}});
    const auto left = r.columns().source_begin() / 2, right = std::min(r.columns().source_end() + 3, c.width);
    r.set_source(left, right - left);
    for (std::size_t y = r.rows().source_begin(); r.wants_rows(); ++y) {
      REQUIRE(y < r.rows().source_end());
      std::copy_n(&full(y, left, 0), 4 * (right - left), r.next_row());
      r.commit_row();
    }
    return pixels;
  };
  for (std::uint64_t i = 0; i < 300; ++i) {
    const auto c = slow::random_case(i);
    slow::stored_planes planes(c.file);
    const auto full = slow::decode(c.file, JCS_EXT_RGBX);
    const auto expected = slow::render(detected, c, planes, false);
    CAPTURE(i);
    REQUIRE(same(from_rows(plain, c, full), expected));
    REQUIRE(same(from_rows(detected, c, full), expected));
  }
}

namespace {

/// Numbers rendered at once, against those of the u8 image, in memory with a guard at each end.
template <class T, class Resizer>
bool numbers_equal(Resizer& r, const slow::resize_case& c, slow::stored_planes& planes, std::size_t skew) {
  const auto pixels = slow::render(r, c, planes, false);
  const mr::normalize_options options{.mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225},
                                      .layout = mr::image_layout::nchw};
  mr::tensor<T, 4> expected({1, 3, c.rows, c.columns});
  mr::normalize<T>({.data = pixels.data(), .shape = {1, c.rows, c.columns, 3}},
                   {.data = expected.data(), .shape = expected.shape()}, options);
  constexpr std::size_t guard = 64;
  std::vector<std::uint8_t> memory(expected.size() * sizeof(T) + 2 * guard + 64, 0x5a);
  auto* data = memory.data() + guard + (32 - reinterpret_cast<std::uintptr_t>(memory.data()) % 32) % 32 + skew;
  mr::detail::plane_resize job{.plan = c.plan(), .target = {.data = data, .cold = true}};
  job.target.type = std::is_same_v<T, float>     ? mr::detail::pixel_type::f32
                    : std::is_same_v<T, mr::f16> ? mr::detail::pixel_type::f16
                                                 : mr::detail::pixel_type::bf16;
  for (std::size_t k = 0; k < 3; ++k) {
    job.target.scale[k] = static_cast<float>(1 / (255 * options.std[k]));
    job.target.bias[k] = static_cast<float>(-options.mean[k] / options.std[k]);
  }
  r.start(job);
  r.render(planes.region({.width = c.width, .height = c.height}));
  const std::size_t bytes = expected.size() * sizeof(T);
  for (auto* p = memory.data(); p < memory.data() + memory.size(); ++p)
    if ((p < data || p >= data + bytes) && *p != 0x5a) return false;
  return std::memcmp(data, expected.data(), bytes) == 0;
}

}  // namespace

TEST_CASE("numbers are the normalized u8 image, bit for bit, at any alignment") {
  portable plain;
  mr::detail::plane_resizer narrow(false), detected;
  for (std::uint64_t i = 0; i < 120; ++i) {
    const auto c = slow::random_case(i);
    slow::stored_planes planes(c.file);
    const std::size_t skew = i % 3 * 4;
    CAPTURE(i);
    REQUIRE(numbers_equal<float>(narrow, c, planes, skew));
    REQUIRE(numbers_equal<float>(detected, c, planes, skew));
    REQUIRE(numbers_equal<mr::f16>(detected, c, planes, skew));
    REQUIRE(numbers_equal<mr::bf16>(detected, c, planes, skew));
    REQUIRE(numbers_equal<float>(plain, c, planes, skew));
  }
}

TEST_CASE("an image with a turned view is the turned image") {
  mr::detail::plane_resizer r;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const auto c = slow::random_case(i);
    slow::stored_planes planes(c.file);
    auto plan = c.plan();
    plan.transposed = true;
    if (i % 2 == 0) plan.rows.flip();
    mr::image pixels({c.columns, c.rows, 3});
    r.start({.plan = plan, .target = {.data = pixels.data(), .cold = true}});
    r.render(planes.region({.width = c.width, .height = c.height}));
    const auto upright = slow::transpose(slow::render(r, c, planes, false));
    CAPTURE(i);
    REQUIRE(same(pixels, i % 2 == 0 ? slow::flip(upright) : upright));
  }
}

TEST_CASE("a resizer that was used for other images computes the same bits") {
  mr::detail::plane_resizer used;
  for (std::uint64_t i = 0; i < 150; ++i) {
    const auto c = slow::random_case(i);
    slow::stored_planes planes(c.file);
    mr::detail::plane_resizer fresh;
    for (const bool fast : {false, true})
      REQUIRE(same(slow::render(used, c, planes, fast), slow::render(fresh, c, planes, fast)));
  }
}

TEST_CASE("composed chroma weights are those of upsampling and then resizing, and stay inside the image") {
  mr::rng d({.seed = 4});
  mr::detail::tap_table luma, chroma;
  for (int i = 0; i < 300; ++i) {
    const auto length = d.between(1, i % 3 == 0 ? 5 : 3'000);
    mr::detail::plan_axis axis(length);
    const auto size = d.between(1, length);
    axis.crop(d.between(0, length - size), size);
    axis.resize(d.between(1, 300));
    luma.build(axis);
    const auto extent = static_cast<std::size_t>((length + 1) / 2);
    mr::detail::compose_chroma(luma, extent, chroma);
    REQUIRE(chroma.outputs() == luma.outputs());
    for (std::size_t o = 0; o < chroma.outputs(); ++o) {
      // Each luma pixel adds 3/4 to the sample at its position and 1/4 to the nearest other one.
      std::vector<int> fourfold(extent + 1, 0);
      const auto give = [&](std::size_t to, int weight) { fourfold[std::min(to, extent - 1)] += weight; };
      for (std::size_t k = 0; k < luma.count(o); ++k) {
        const std::size_t x = luma.first(o) + k, other = x % 2 == 1 ? x / 2 + 1 : x == 0 ? 0 : x / 2 - 1;
        give(x / 2, 3 * luma.weights(o)[k]);
        give(other, luma.weights(o)[k]);
      }
      int sum = 0, expected = 0;
      for (std::size_t k = 0; k < chroma.count(o); ++k) {
        REQUIRE(chroma.weights(o)[k] >= 0);
        sum += chroma.weights(o)[k];
        expected += fourfold[chroma.first(o) + k];
        REQUIRE(sum == (expected + 2) / 4);
      }
      REQUIRE(sum == 1 << mr::detail::tap_table::weight_bits);
      REQUIRE(chroma.end(o) <= extent);
    }
  }
}

namespace {

mr::crop_box random_box(mr::rng& d, std::size_t height, std::size_t width) {
  const auto of = [&](std::size_t n) { return static_cast<std::size_t>(d.between(1, static_cast<std::int64_t>(n))); };
  mr::crop_box box{.width = of(width), .height = of(height)};
  box.left = of(width - box.width + 1) - 1;
  box.top = of(height - box.height + 1) - 1;
  return box;
}

template <class Kernels>
std::size_t wrong_samples(mr::detail::basic_rgb_rows<Kernels>& rows, const mr::detail::jpeg_planes& planes,
                          const mr::crop_box& box, const mr::image& expected) {
  rows.start(planes, box.left, box.left + box.width);
  const auto down = static_cast<std::size_t>(planes.vertical_sampling);
  std::size_t wrong = 0;
  for (std::size_t y = box.top / down * down; y < box.top + box.height; y += 4) {
    rows.compute(y);
    for (std::size_t k = 0; k < 4; ++k)
      for (std::size_t x = box.left; x < box.left + box.width && y + k >= box.top && y + k < box.top + box.height; ++x)
        for (std::size_t c = 0; c < 3; ++c)
          wrong += rows.row(c, k)[x - rows.left()] != expected(y + k, x, c) ? 1 : 0;
  }
  return wrong;
}

template <class Kernels>
void check_against_libjpeg(bool wide_vectors = false) {
  mr::rng d({.seed = 11});
  mr::detail::basic_rgb_rows<Kernels> rows(wide_vectors);
  for (const auto sampling : slow::samplings)
    for (int i = 0; i < 120; ++i) {
      const auto height = static_cast<std::size_t>(i < 49 ? i / 7 + 1 : d.between(1, 90));
      const auto width = static_cast<std::size_t>(i < 49 ? i % 7 + 1 : d.between(1, 150));
      auto pixels = slow::photo(height, width, 3, static_cast<std::uint64_t>(i));
      if (i % 3 == 0)
        for (auto& v : pixels.span()) v = d.chance(0.5) ? 255 : 0;
      const auto file = mr::encode_jpeg(pixels, {.quality = i % 2 == 0 ? 100 : 80, .sampling = sampling});
      const auto expected = slow::decode(file);
      slow::stored_planes planes(file);
      for (int k = 0; k < 4; ++k) {
        const auto box = k == 0 ? mr::crop_box{.width = width, .height = height} : random_box(d, height, width);
        const auto cut = planes.region(slow::with_margin(box, height, width), d.below(100));
        CAPTURE(static_cast<int>(sampling));
        CAPTURE(height);
        CAPTURE(width);
        CAPTURE(box.left);
        CAPTURE(box.width);
        REQUIRE(wrong_samples(rows, cut, box, expected) == 0);
      }
    }
}

}  // namespace

TEST_CASE("rows computed from planes are libjpeg's own: portable code") {
  check_against_libjpeg<mr::detail::portable_upsampling>();
}

#if defined __x86_64__ || defined __aarch64__
using vector_upsampling = mr::detail::word_layer::upsampling;

TEST_CASE("rows computed from planes are libjpeg's own: AVX2 or NEON") {
  if (!mr::detail::cpu_has_word_layer()) return;
  check_against_libjpeg<vector_upsampling>();
}

TEST_CASE("rows computed from planes are libjpeg's own: AVX-512") {
  if (!mr::detail::cpu_has_wide_vectors()) return;
  check_against_libjpeg<vector_upsampling>(true);
}

TEST_CASE("colors are equal for every luma, blue and red") {
  if (!mr::detail::cpu_has_word_layer()) return;
  std::vector<std::uint8_t> luma(256), blue(256), red(256);
  std::vector<std::uint8_t> rows[2][3];
  for (auto& build : rows)
    for (auto& channel : build) channel.resize(256);
  for (std::size_t x = 0; x < 256; ++x) red[x] = static_cast<std::uint8_t>(x);
  for (const int y : {0, 1, 100, 127, 128, 129, 200, 254, 255})
    for (int u = 0; u < 256; ++u) {
      std::fill(luma.begin(), luma.end(), static_cast<std::uint8_t>(y));
      std::fill(blue.begin(), blue.end(), static_cast<std::uint8_t>(u));
      const auto row = [&](auto& to) {
        return mr::detail::color_row<std::uint8_t>{.luma = luma.data(), .blue = blue.data(), .red = red.data(),
                                                   .count = 256, .rgb = {to[0].data(), to[1].data(), to[2].data()}};
      };
      mr::detail::portable_upsampling::color_full(row(rows[0]));
      vector_upsampling::color_full(row(rows[1]));
      for (std::size_t c = 0; c < 3; ++c) REQUIRE(rows[0][c] == rows[1][c]);
    }
}
#endif
