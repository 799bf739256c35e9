#include <millrace/base/digest.hpp>
#include <millrace/image/plane_resizer.hpp>
#include <millrace/image/source_box.hpp>

#include "slow_pictures.hpp"

#include <doctest/doctest.h>

namespace mr = millrace;

namespace {

template <class Resizer>
void run(Resizer& r, const mr::detail::resize_plan& plan, const mr::image& source, mr::image& out, std::size_t margin) {
  r.start({.plan = plan, .target = {.data = out.data()}});
  const std::size_t left = r.columns().source_begin() - std::min(margin, r.columns().source_begin());
  const std::size_t right = std::min(r.columns().source_end() + margin, source.shape()[1]);
  r.set_source(left, right - left);
  for (std::size_t y = r.rows().source_begin(); r.wants_rows(); ++y) {
    REQUIRE(y < r.rows().source_end());
    std::uint8_t* row = r.next_row();
    for (std::size_t x = left; x < right; ++x, row += 4) {
      for (std::size_t c = 0; c < 3; ++c) row[c] = source(y, x, c);
      row[3] = 0xab;   // the decoder's fourth byte means nothing
    }
    r.commit_row();
  }
}

mr::detail::resize_plan random_plan(mr::draw& d, std::size_t height, std::size_t width, bool& large) {
  mr::detail::resize_plan plan{.rows = mr::plan_axis(static_cast<std::int64_t>(height)),
                               .columns = mr::plan_axis(static_cast<std::int64_t>(width))};
  for (mr::plan_axis* a : {&plan.rows, &plan.columns}) {
    if (d.chance(0.7)) {
      const auto size = d.between(1, a->count);
      a->crop(d.between(0, a->count - size), size);
    }
    if (d.chance(0.9)) a->resize(d.between(1, large ? 90 : 20));
    if (d.chance(0.5)) a->flip();
    if (d.chance(0.3)) {
      const auto size = d.between(1, a->count);
      a->crop(d.between(0, a->count - size), size);
    }
  }
  plan.transposed = d.chance(0.3);
  return plan;
}

/// Rows and columns of synthetic pixels, so that no decoder is involved.
std::uint64_t digest_of_fixed_pictures() {
  mr::stream_digest sum;
  mr::draw d({.seed = 77});
  mr::detail::plane_resizer r;
  for (std::uint64_t i = 0; i < 60; ++i) {
    mr::image source({static_cast<std::size_t>(d.between(1, 150)), static_cast<std::size_t>(d.between(1, 150)), 3});
    for (auto& v : source.span()) v = static_cast<std::uint8_t>(d.below(256));
    bool large = i % 2 == 0;
    const auto plan = random_plan(d, source.shape()[0], source.shape()[1], large);
    const auto rows = static_cast<std::size_t>(plan.rows.count), columns = static_cast<std::size_t>(plan.columns.count);
    mr::image out({rows, columns, 3});
    run(r, plan, source, out, 1);
    sum.add(i, mr::digest_bytes(std::as_bytes(out.span())));
  }
  return sum.value();
}

}  // namespace

TEST_CASE("a resize is within one level of real numbers") {
  mr::draw d({.seed = 1});
  mr::detail::plane_resizer r;
  double mean = 0;
  constexpr int rounds = 150;
  for (int i = 0; i < rounds; ++i) {
    const auto height = static_cast<std::size_t>(d.between(1, i % 10 == 0 ? 900 : 120));
    const auto width = static_cast<std::size_t>(d.between(1, i % 10 == 5 ? 900 : 120));
    mr::image source = slow::photo(height, width, 3, static_cast<std::uint64_t>(i));
    if (i % 4 == 0)
      for (auto& v : source.span()) v = d.chance(0.5) ? 255 : 0;
    const auto target_height = static_cast<std::size_t>(d.between(1, 60)),
               target_width = static_cast<std::size_t>(d.between(1, 60));
    mr::detail::resize_plan plan{.rows = mr::plan_axis(static_cast<std::int64_t>(height)),
                                 .columns = mr::plan_axis(static_cast<std::int64_t>(width))};
    plan.rows.resize(static_cast<std::int64_t>(target_height));
    plan.columns.resize(static_cast<std::int64_t>(target_width));
    mr::image out({target_height, target_width, 3});
    run(r, plan, source, out, 0);
    const auto gap = slow::compare(out, slow::resize(slow::real(source), target_height, target_width));
    CAPTURE(height);
    CAPTURE(width);
    CAPTURE(target_height);
    CAPTURE(target_width);
    CHECK(gap.max <= 1);
    mean += gap.mean / rounds;
  }
  CHECK(mean < 0.02);
}

TEST_CASE("no resize leaves every pixel as it is") {
  const auto source = slow::photo(19, 23, 3, 5);
  mr::detail::plane_resizer r;
  for (const bool flipped : {false, true}) {
    mr::detail::resize_plan plan{.rows = mr::plan_axis(19), .columns = mr::plan_axis(23)};
    plan.rows.crop(3, 11);
    plan.columns.crop(5, 17);
    if (flipped) plan.columns.flip();
    mr::image out({11, 17, 3});
    run(r, plan, source, out, 2);
    const auto cropped = slow::crop(source, {.left = 5, .top = 3, .width = 17, .height = 11});
    const auto expected = flipped ? slow::flip(cropped) : cropped;
    CHECK(std::equal(out.span().begin(), out.span().end(), expected.span().begin()));
  }
}

TEST_CASE("weights of every output sum to one, are never negative and stay inside the clip; their span is foreseen") {
  mr::draw d({.seed = 2});
  mr::detail::tap_table t;
  for (int i = 0; i < 400; ++i) {
    mr::plan_axis a(d.between(1, 70'000 >> d.below(16)));
    for (int k = 0; k < 2; ++k) {
      const auto size = d.between(1, a.count);
      a.crop(d.between(0, a.count - size), size);
      a.resize(d.between(1, 600));
    }
    if (d.chance(0.3)) a = a.scaled(std::int64_t{1} << d.below(3));
    t.build(a);
    REQUIRE(t.outputs() == static_cast<std::size_t>(a.count));
    REQUIRE(mr::detail::span_of(a).begin == t.source_begin());
    REQUIRE(mr::detail::span_of(a).end == t.source_end());
    for (std::size_t o = 0; o < t.outputs(); ++o) {
      int sum = 0;
      for (std::size_t k = 0; k < t.count(o); ++k) {
        REQUIRE(t.weights(o)[k] >= 0);
        sum += t.weights(o)[k];
      }
      REQUIRE(sum == 1 << mr::detail::tap_table::weight_bits);
      REQUIRE(t.first(o) >= static_cast<std::size_t>(a.clip_begin));
      REQUIRE(t.end(o) <= static_cast<std::size_t>(a.clip_end));
      if (o > 0) REQUIRE(t.first(o) >= t.first(o - 1));
      if (o > 0) REQUIRE(t.end(o) >= t.end(o - 1));
    }
  }
}

TEST_CASE("plain and vector kernels give the same bits") {
  mr::draw d({.seed = 3});
  mr::detail::basic_plane_resizer<mr::detail::portable_plane_kernels> plain;
  mr::detail::plane_resizer native;
  for (int i = 0; i < 300; ++i) {
    mr::image source({static_cast<std::size_t>(d.between(1, 200)), static_cast<std::size_t>(d.between(1, 200)), 3});
    for (auto& v : source.span()) v = static_cast<std::uint8_t>(d.below(256));
    bool large = d.chance(0.5);
    const auto plan = random_plan(d, source.shape()[0], source.shape()[1], large);
    mr::image one({static_cast<std::size_t>(plan.rows.count), static_cast<std::size_t>(plan.columns.count), 3});
    mr::image two(one.shape());
    run(plain, plan, source, one, 1);
    run(native, plan, source, two, 3);
    REQUIRE(std::equal(one.span().begin(), one.span().end(), two.span().begin()));
  }
}

TEST_CASE("the pixels of fixed pictures are fixed for ever, on every compiler and flag") {
  CHECK(digest_of_fixed_pictures() == 4150225980975120248U);
}
