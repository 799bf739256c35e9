#include <millrace/base/digest.hpp>
#include <millrace/image/picture/picture.hpp>
#include <millrace/image/resize/plane_resizer.hpp>

#include "../../../thorough.hpp"
#include "../planned_pictures.hpp"
#include "resize_cases.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

using mr::resize_filter;

namespace {

using portable = mr::detail::basic_plane_resizer<mr::detail::portable_plane_kernels>;

slow::resize_case bicubic_case(std::uint64_t i) {
  auto c = slow::random_case(i);
  c.filter = resize_filter::bicubic;
  return c;
}

mr::detail::plan_axis random_axis(mr::rng& d, std::int64_t longest, std::int64_t largest) {
  mr::detail::plan_axis a(d.between(1, longest));
  for (auto k = d.between(1, 2); k > 0; --k) {
    const auto size = d.between(1, a.count);
    a.crop(d.between(0, a.count - size), size);
    if (d.chance(0.9)) a.resize(d.between(1, largest));
  }
  a.filter = resize_filter::bicubic;
  return a;
}

}  // namespace

TEST_CASE("the cubic's integers are the printed formula, and exact for integer positions") {
  for (const std::int64_t pixel : {1L, 2L, 3L, 7L, 1'000L, 65'535L, (1L << 37) - 1, 1L << 37}) {
    const mr::detail::cubic_kernel kernel(pixel);
    CHECK(kernel.weight(0) == std::int64_t{1} << 31);
    CHECK(kernel.weight(pixel) == 0);
    const std::int64_t step = std::max<std::int64_t>(2 * pixel / 997, 1);
    for (std::int64_t at = 0; at < 2 * pixel; at += step) {
      const double expected = slow::cubic(static_cast<double>(at) / static_cast<double>(pixel));
      REQUIRE(std::abs(static_cast<double>(kernel.weight(at)) * 0x1p-31 - expected) < 1e-5);
    }
  }
}

TEST_CASE("bicubic weights are those of the formula, sum to one and stay inside the clip; their span is known before") {
  mr::rng d({.seed = 2});
  mr::detail::tap_table t;
  int largest = 0, least = 0;
  for (std::size_t i = 0; i < 600; i += stride(3)) {
    auto a = random_axis(d, 70'000 >> d.below(16), 600);
    if (d.chance(0.3)) a = a.scaled(std::int64_t{1} << d.below(3));
    t.build(a);
    REQUIRE(t.overshoots());
    REQUIRE(t.outputs() == static_cast<std::size_t>(a.count));
    REQUIRE(mr::detail::source_span_of(a).begin == t.source_begin());
    REQUIRE(mr::detail::source_span_of(a).end == t.source_end());
    const double scale = static_cast<double>(a.length) / static_cast<double>(a.target * a.denominator);
    const double begin = static_cast<double>(a.begin) / static_cast<double>(a.denominator);
    for (std::size_t o = 0; o < t.outputs(); ++o) {
      REQUIRE(t.first(o) >= static_cast<std::size_t>(a.clip_begin));
      REQUIRE(t.end(o) <= static_cast<std::size_t>(a.clip_end));
      const double center = begin + (static_cast<double>(a.first) + static_cast<double>(o) + 0.5) * scale;
      double all = 0;
      const auto formula = [&](std::size_t k) {
        return slow::cubic((static_cast<double>(t.first(o) + k) + 0.5 - center) / std::max(scale, 1.0));
      };
      for (std::size_t k = 0; k < t.count(o); ++k) all += formula(k);
      int sum = 0;
      for (std::size_t k = 0; k < t.count(o); ++k) {
        const int weight = t.weights(o)[k];
        REQUIRE(std::abs(weight - 16'384 * formula(k) / all) < 1.6);   // differences of rounded sums
        sum += weight;
        largest = std::max(largest, weight);
        least = std::min(least, weight);
      }
      REQUIRE(sum == 1 << mr::detail::tap_table::weight_bits);
    }
  }
  CHECK(least < -1'000);
  CHECK(largest > 16'384);   // at an edge, where the weights beyond it are missing
  CHECK(largest < 5 << 12);
}

TEST_CASE("bicubic, exact: planes equal columns and then rows in real numbers, within one level") {
  mr::detail::plane_resizer r;
  slow::difference sum;
  const std::uint64_t count = 600 / stride(6);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto c = bicubic_case(i);
    slow::stored_planes planes(c.file);
    const auto gap = slow::compare(slow::render(r, c, planes, false, i % 5 * 20), slow::decoded_then_resized(c));
    CAPTURE(i);
    CHECK(gap.max <= 1);
    slow::gather(sum, gap, count);
  }
  CHECK(sum.mean < 0.02);
}

TEST_CASE("bicubic, fast: planes equal resized planes in real numbers, within one level") {
  mr::detail::plane_resizer r;
  slow::difference sum;
  const std::uint64_t count = 600 / stride(6);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto c = bicubic_case(i);
    slow::stored_planes planes(c.file);
    const auto rendered = slow::render(r, c, planes, true, i % 5 * 20);
    const auto full = planes.region({.width = c.width, .height = c.height});
    const auto gap = slow::compare(rendered, slow::planes_then_colors(c, full));
    CAPTURE(i);
    CHECK(gap.max <= 1);
    slow::gather(sum, gap, count);
  }
  CHECK(sum.mean < 0.05);
}

TEST_CASE("bicubic: portable and vector kernels compute the same bits, and a used resizer those of a fresh one") {
  portable plain;
  mr::detail::plane_resizer narrow(false), detected;
  for (std::uint64_t i = 0; i < 600 / stride(6); ++i) {
    auto c = bicubic_case(i);
    slow::stored_planes planes(c.file);
    mr::detail::plane_resizer fresh;
    for (const bool fast : {false, true}) {
      CAPTURE(i);
      CAPTURE(fast);
      c.filter = resize_filter::bicubic;
      const auto rendered = slow::render(detected, c, planes, fast);
      REQUIRE(slow::same(rendered, slow::render(plain, c, planes, fast)));
      REQUIRE(slow::same(rendered, slow::render(narrow, c, planes, fast)));
      REQUIRE(slow::same(rendered, slow::render(fresh, c, planes, fast)));
      c.filter = resize_filter::bilinear;
      REQUIRE(slow::same(slow::render(detected, c, planes, fast), slow::render(fresh, c, planes, fast)));
    }
  }
}

TEST_CASE("a bicubic resize to the same size changes nothing, and the last named filter is the plan's") {
  const auto file = mr::encode_jpeg(slow::photo(50, 70, 3, 3));
  const auto p = mr::jpeg(slow::view(file)).crop({.left = 5, .top = 7, .width = 41, .height = 33});
  const auto bicubic = p.filter(mr::resize_filter::bicubic);
  CHECK(slow::same(bicubic.pixels(), p.pixels()));
  CHECK(slow::same(bicubic.resize(33, 41).pixels(), p.pixels()));
  CHECK_FALSE(slow::same(bicubic.resize(20, 20).pixels(), p.resize(20, 20).pixels()));
  CHECK(slow::same(p.resize(20, 20).filter(mr::resize_filter::bicubic).pixels(), bicubic.resize(20, 20).pixels()));
  CHECK(slow::same(bicubic.filter(mr::resize_filter::bilinear).resize(20, 20).pixels(), p.resize(20, 20).pixels()));
  mr::rng one({.seed = 1}), two({.seed = 1});
  CHECK(bicubic.random_resized_crop(16, one).geometry().plan().rows.begin ==
        p.random_resized_crop(16, two).geometry().plan().rows.begin);
}

TEST_CASE("a random filter is either of both, each half of the time") {
  const auto file = mr::encode_jpeg(slow::photo(50, 70, 3, 3));
  const auto p = mr::jpeg(slow::view(file)).resize(20, 20);
  mr::rng d({.seed = 2});
  int bicubic = 0;
  for (int i = 0; i < 1'000; ++i)
    bicubic += p.random_filter(d).geometry().plan().rows.filter == mr::resize_filter::bicubic ? 1 : 0;
  CHECK(bicubic > 400);
  CHECK(bicubic < 600);
}

TEST_CASE("a bicubic resize is within one level of the full image, decoded and resized; by both decoders the same") {
  mr::scratch s;
  for (std::uint64_t i = 0; i < 150; i += stride(3)) {
    const auto c = bicubic_case(1'000 + i);
    for (const auto quality : {mr::picture_quality::exact, mr::picture_quality::fast}) {
      const auto by = [&](mr::picture_decoder decoder) {
        return slow::shrunk(mr::jpeg(slow::view(c.file), {.quality = quality, .decoder = decoder})
                                .filter(mr::resize_filter::bicubic), mr::rng({.seed = i}));
      };
      if (c.width < 2 || c.height < 2) continue;
      REQUIRE(slow::same(by(mr::picture_decoder::built_in).pixels(s), by(mr::picture_decoder::libjpeg).pixels(s)));
    }
    const auto full = slow::resize_bicubic(slow::real(slow::decode(c.file)), 31, 40);
    const mr::crop_box box{.left = 7, .top = 3, .width = 20, .height = 25};
    const auto p = mr::jpeg(slow::view(c.file)).filter(mr::resize_filter::bicubic).resize(31, 40).crop(box);
    CHECK(slow::compare(p.pixels(s), slow::crop(full, box)).max <= 1);
  }
}

TEST_CASE("bicubic pixels of fixed images are frozen, on every compiler and flag") {
  mr::detail::stream_digest sum;
  mr::rng d({.seed = 78});
  mr::detail::plane_resizer r;
  for (std::uint64_t i = 0; i < 60; ++i) {
    mr::image source({static_cast<std::size_t>(d.between(1, 150)), static_cast<std::size_t>(d.between(1, 150)), 3});
    for (auto& v : source.span()) v = static_cast<std::uint8_t>(d.below(256));
    mr::detail::resize_plan plan{.rows = mr::detail::plan_axis(static_cast<std::int64_t>(source.shape()[0])),
                                 .columns = mr::detail::plan_axis(static_cast<std::int64_t>(source.shape()[1]))};
    plan.rows.resize(d.between(1, 60));
    plan.columns.resize(d.between(1, 60));
    plan.rows.filter = plan.columns.filter = resize_filter::bicubic;
    mr::image out({static_cast<std::size_t>(plan.rows.count), static_cast<std::size_t>(plan.columns.count), 3});
    r.start({.plan = plan, .target = {.data = out.data()}});
    r.set_source(0, source.shape()[1]);
    for (std::size_t y = r.rows().source_begin(); r.wants_rows(); ++y) {
      for (std::size_t x = 0; x < source.shape()[1]; ++x) std::memcpy(r.next_row() + 4 * x, &source(y, x, 0), 3);
      r.commit_row();
    }
    sum.add(i, mr::detail::digest_bytes(std::as_bytes(out.span())));
  }
  CHECK(sum.value() == 13212472356131141553U);
}

namespace {

/// One axis of cv::resize() with INTER_LINEAR, as its documentation states it: the two pixels around the position
/// (o + 0.5) * scale - 0.5, the outermost ones repeated.
slow::real_image linear_rows(const slow::real_image& from, std::size_t target) {
  const auto [height, width, channels] = from.shape();
  slow::real_image result({target, width, channels});
  const double scale = static_cast<double>(height) / static_cast<double>(target);
  for (std::size_t o = 0; o < target; ++o) {
    const double position = (static_cast<double>(o) + 0.5) * scale - 0.5, low = std::floor(position);
    const auto at = [last = static_cast<double>(height - 1)](double row) {
      return static_cast<std::size_t>(std::clamp(row, 0.0, last));
    };
    for (std::size_t x = 0; x < width; ++x)
      for (std::size_t c = 0; c < channels; ++c)
        result(o, x, c) = from(at(low), x, c) + (position - low) * (from(at(low + 1), x, c) - from(at(low), x, c));
  }
  return result;
}

}  // namespace

TEST_CASE("opencv_linear: pixels are within one level of cv::resize() in real numbers, with the same bits everywhere") {
  portable plain;
  mr::detail::plane_resizer narrow(false), detected;
  slow::difference sum;
  for (std::uint64_t i = 0; i < 600 / stride(6); ++i) {
    auto c = slow::random_case(i);
    c.filter = resize_filter::opencv_linear;
    slow::stored_planes planes(c.file);
    CAPTURE(i);
    const auto rendered = slow::render(detected, c, planes, false);
    auto expected = slow::crop(slow::real(slow::decode(c.file)), c.box);
    expected = slow::transpose(linear_rows(slow::transpose(linear_rows(expected, c.rows)), c.columns));
    slow::gather(sum, slow::compare(rendered, c.flipped ? slow::flip(expected) : expected), 600 / stride(6));
    for (const bool fast : {false, true}) {
      const auto bits = slow::render(detected, c, planes, fast);
      REQUIRE(slow::same(bits, slow::render(plain, c, planes, fast)));
      REQUIRE(slow::same(bits, slow::render(narrow, c, planes, fast)));
    }
  }
  MESSAGE("largest difference " << sum.max << ", mean " << sum.mean);
  CHECK(sum.max <= 1);
}

TEST_CASE("opencv_linear: the weights of fixed axes have a frozen digest") {
  std::uint32_t sum = 0;
  mr::detail::tap_table table;
  for (const std::int64_t outputs : {7, 40, 333}) {
    mr::detail::plan_axis axis(200);
    axis.filter = resize_filter::opencv_linear;
    axis.crop(10, 150);
    axis.resize(outputs);
    table.build(axis);
    for (std::size_t o = 0; o < table.outputs(); ++o) {
      sum = sum * 16'777'619U ^ static_cast<std::uint32_t>(table.first(o));
      for (std::size_t k = 0; k < table.count(o); ++k)
        sum = sum * 16'777'619U ^ static_cast<std::uint32_t>(table.weights(o)[k]);
    }
  }
  CHECK(sum == 2'378'384'661);
}

TEST_CASE("opencv_linear: fast images are not decoded at a reduced size, and small images have an output in padding") {
  const auto file = mr::encode_jpeg(slow::photo(160, 240, 3, 3));
  const auto plan_of = [&](mr::picture_quality quality) {
    return mr::jpeg(slow::view(file), {.quality = quality}).filter(resize_filter::opencv_linear).resize(20, 30);
  };
  const auto exact = plan_of(mr::picture_quality::exact).pixels(), fast = plan_of(mr::picture_quality::fast).pixels();
  std::size_t apart = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) apart += std::abs(exact.span()[i] - fast.span()[i]) > 40 ? 1 : 0;
  CHECK(apart < exact.size() / 50);
  const auto dot = mr::encode_jpeg(mr::image({1, 1, 3}));
  const mr::image pixels = mr::jpeg(slow::view(dot)).filter(resize_filter::opencv_linear)
                               .pad({.left = 100, .right = 3}, {.color = {9, 9, 9}}).resize(1, 2).pixels();
  CHECK(pixels(0, 0, 0) == 9);
  CHECK(pixels(0, 1, 0) == 0);
}
