#include <millrace/image/augment/photometric_plan.hpp>
#include <millrace/image/png/png.hpp>
#include <millrace/image/picture/rgba_picture.hpp>
#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/measure/values/event_names.hpp>

#include "../planned_pictures.hpp"
#include "../slow_pictures.hpp"
#include "png_files.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

namespace mr = millrace;

namespace {

struct random_png {
  slow::png_samples samples;
  std::vector<std::byte> file;
};

random_png draw_png(mr::rng& d, bool interlaced = false) {
  const auto samples = slow::random_samples({.width = d.below(60) + 20, .height = d.below(60) + 20, .color = 6,
                                             .interlaced = interlaced}, d.bits());
  return {samples, slow::make_png(samples, {.seed = d.bits()})};
}

/// Channel `c` of the stored pixels, or its product with alpha as Pillow rounds it.
slow::real_image plane(const slow::png_samples& from, std::size_t c, bool times_alpha) {
  slow::real_image result({from.kind.height, from.kind.width, 1});
  for (std::size_t y = 0; y < from.kind.height; ++y)
    for (std::size_t x = 0; x < from.kind.width; ++x) {
      const unsigned product = from.at(y, x, c) * from.at(y, x, 3) + 128;
      result(y, x, 0) = times_alpha ? ((product >> 8) + product) >> 8 : from.at(y, x, c);
    }
  return result;
}

}  // namespace

TEST_CASE("an image with alpha has the stored pixels, for any box") {
  mr::rng d({.seed = 1});
  mr::scratch s;
  for (int round = 0; round < 20; ++round) {
    const auto [samples, file] = draw_png(d, round % 2 == 1);
    const mr::crop_box box{.left = 7, .top = 5, .width = 11, .height = 9};
    const mr::image got = mr::rgba_picture(mr::png(slow::view(file)).crop(box)).pixels(s);
    REQUIRE(got.shape() == std::array<std::size_t, 3>{9, 11, 4});
    for (std::size_t y = 0; y < 9; ++y)
      for (std::size_t x = 0; x < 11; ++x)
        for (std::size_t c = 0; c < 4; ++c) REQUIRE(got(y, x, c) == samples.at(5 + y, 7 + x, c));
  }
}

TEST_CASE("colors are resized with alpha as their weight, within one level before the division") {
  mr::rng d({.seed = 2});
  mr::scratch s;
  for (int round = 0; round < 30; ++round) {
    const auto [samples, file] = draw_png(d);
    const std::size_t height = d.below(50) + 1, width = d.below(50) + 1;
    const mr::image got = mr::rgba_picture(mr::png(slow::view(file)).resize(height, width)).pixels(s);
    const auto alpha = slow::resize(plane(samples, 3, false), height, width);
    for (std::size_t c = 0; c < 3; ++c) {
      const auto weighed = slow::resize(plane(samples, c, true), height, width);
      for (std::size_t y = 0; y < height; ++y)
        for (std::size_t x = 0; x < width; ++x) {
          const double a = got(y, x, 3);
          REQUIRE(std::abs(a - alpha(y, x, 0)) <= 1);
          // The division rounds down, by less than one level of the color.
          REQUIRE(got(y, x, c) * a / 255 <= weighed(y, x, 0) + 1);
          if (got(y, x, c) < 255) REQUIRE((got(y, x, c) + 1) * a / 255 >= weighed(y, x, 0) - 1);
        }
    }
  }
}

TEST_CASE("colors under transparent pixels are invisible") {
  slow::png_samples samples{.kind = {.width = 40, .height = 40, .color = 6}};
  for (std::size_t i = 0; i < 1'600; ++i) {
    const bool visible = i % 40 < 20;
    for (const unsigned value : {visible ? 200U : 0U, visible ? 10U : 255U, 50U, visible ? 255U : 0U})
      samples.sample.push_back(value);
  }
  const mr::image got = mr::rgba_picture(mr::png(slow::view(slow::make_png(samples))).resize(13, 13)).pixels();
  std::size_t edges = 0;
  for (std::size_t y = 0; y < 13; ++y)
    for (std::size_t x = 0; x < 13; ++x) {
      if (got(y, x, 3) > 0 && got(y, x, 3) < 255) ++edges;
      if (got(y, x, 3) < 64) continue;
      CHECK(std::abs(got(y, x, 0) - 200) <= 4);
      CHECK(std::abs(got(y, x, 1) - 10) <= 4);
    }
  CHECK(edges >= 13);
}

TEST_CASE("operations change the colors and leave alpha, and images without alpha or with a background have 255") {
  mr::rng d({.seed = 3});
  const auto [samples, file] = draw_png(d);
  const mr::picture plain = mr::png(slow::view(file));
  const mr::image before = mr::rgba_picture(plain).pixels();
  const mr::image after = mr::rgba_picture(plain.apply(mr::photometric_plan().invert())).pixels();
  for (std::size_t i = 0; i < before.span().size(); ++i)
    REQUIRE(after.span()[i] == (i % 4 == 3 ? before.span()[i] : 255 - before.span()[i]));

  const mr::image photo = slow::photo(30, 40, 3, 1);
  const auto jpeg_file = mr::encode_jpeg(photo);
  const mr::rgb_color white{255, 255, 255};
  for (const mr::picture& p : {mr::jpeg(slow::view(jpeg_file)), mr::png(slow::view(file), {.background = white})}) {
    const mr::picture small = p.resize(9, 8).flip();
    const mr::image rgb = small.pixels(), rgba = mr::rgba_picture(small).pixels();
    for (std::size_t i = 0; i < 72; ++i) {
      for (std::size_t c = 0; c < 3; ++c) REQUIRE(rgba.span()[4 * i + c] == rgb.span()[3 * i + c]);
      REQUIRE(rgba.span()[4 * i + 3] == 255);
    }
  }
}

TEST_CASE("images with alpha are the same together as alone, and a row of another size is refused") {
  mr::rng d({.seed = 4});
  mr::scratch s;
  std::vector<random_png> files;
  std::vector<mr::rgba_picture> pictures;
  std::vector<const mr::rgba_picture*> items;
  std::vector<std::vector<std::uint8_t>> buffers;
  std::vector<std::span<std::uint8_t>> rows;
  for (std::size_t i = 0; i < mr::rgba_picture::together; ++i) files.push_back(draw_png(d));
  for (std::size_t i = 0; i < files.size(); ++i)
    pictures.emplace_back(slow::planned(mr::png(slow::view(files[i / 2 * 2].file)), mr::rng({.seed = d.bits()})));
  for (const auto& p : pictures) {
    items.push_back(&p);
    const auto [height, width, channels] = p.shape();
    buffers.emplace_back(height * width * channels);
  }
  for (auto& row : buffers) rows.emplace_back(row);
  mr::rgba_picture::render_together(items, rows, s);
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const mr::image alone = pictures[i].pixels(s);
    REQUIRE(std::equal(alone.span().begin(), alone.span().end(), buffers[i].begin(), buffers[i].end()));
  }
  std::vector<std::uint8_t> small(buffers[0].size() - 4);
  CHECK_THROWS_AS(pictures[0].render(small, s), mr::setup_error);
  small.resize(buffers[0].size() - 1);
  CHECK_THROWS_AS(pictures[0].render(small, s), mr::setup_error);
}

TEST_CASE("images of one PNG over different backgrounds have each its own") {
  mr::rng d({.seed = 7});
  mr::scratch s;
  const auto [samples, file] = draw_png(d);
  const mr::picture dropped = mr::png(slow::view(file)), red = mr::png(slow::view(file), {.background = {{255, 0, 0}}}),
                    blue = mr::png(slow::view(file), {.background = {{0, 0, 255}}});
  std::vector<std::vector<std::uint8_t>> together;
  mr::picture::group group;
  const std::vector<mr::picture> all{dropped, red, blue, blue.flip(), red.resize(9, 9), dropped.flip()};
  for (const auto& p : all) together.emplace_back(3 * p.height() * p.width());
  for (std::size_t i = 0; i < all.size(); ++i) all[i].join(group, together[i]);
  group.render(s);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const mr::image alone = all[i].pixels();
    REQUIRE(std::equal(alone.span().begin(), alone.span().end(), together[i].begin(), together[i].end()));
  }
}

TEST_CASE("crops of one PNG are decoded once, with the bits of each alone, also of a damaged one") {
  mr::rng d({.seed = 5});
  for (int round = 0; round < 60; ++round) {
    auto [samples, file] = draw_png(d, round % 5 == 0);
    const bool cut = round % 3 == 2;
    if (cut) file.resize(file.size() / 2 + d.below(file.size() / 3));
    std::vector<mr::picture> views;
    for (int k = 0; k < 10; ++k)
      views.push_back(slow::planned(mr::png(slow::view(file)), mr::rng({.seed = 6, .sample = d.bits()})));
    std::vector<std::vector<std::uint8_t>> alone, together;
    bool all_good = true;
    mr::scratch one, many;
    mr::event_counts counts;
    many.count_into(counts);
    for (const auto& p : views) {
      alone.emplace_back(3 * p.height() * p.width());
      together.push_back(alone.back());
      try {
        p.render(alone.back(), one);
      } catch (const mr::data_error&) {
        all_good = false;
      }
    }
    mr::picture::group group;
    for (std::size_t k = 0; k < views.size(); ++k) views[k].join(group, together[k]);
    if (!all_good) {
      CHECK(cut);
      CHECK_THROWS_AS(group.render(many), mr::data_error);
      continue;
    }
    group.render(many);
    REQUIRE(together == alone);
    if (cut) continue;
    std::uint64_t shared = 0;
    for (const auto& c : counts.counts())
      if (mr::detail::event_of_text(c.what) == mr::detail::event_name::shared) shared += c.times;
    CHECK(shared == 9);
  }
}
