#include <millrace/device/normalize.hpp>
#include <millrace/image/resize/plane_resizer.hpp>

#include "../../../thorough.hpp"
#include "resize_cases.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <type_traits>

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
