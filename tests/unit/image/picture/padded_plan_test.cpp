#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/image/labels/label_map.hpp>
#include <millrace/image/picture/normalized_picture.hpp>
#include <millrace/image/picture/padded_picture.hpp>
#include <millrace/image/picture/patch_list.hpp>
#include <millrace/image/picture/rgba_picture.hpp>
#include <millrace/image/png/png.hpp>
#include <millrace/image/png/png_encoder.hpp>

#include "../planned_pictures.hpp"
#include "../slow_geometry.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

namespace mr = millrace;

namespace {

/// The position that numpy.pad() repeats, found by walking back and forth.
std::int64_t walked(mr::padding_mode mode, std::int64_t position, std::int64_t count) {
  if (mode == mr::padding_mode::edge) return position < 0 ? 0 : position >= count ? count - 1 : position;
  if (count == 1) return 0;
  std::int64_t at = 0, step = 1;
  const bool repeats = mode == mr::padding_mode::symmetric;
  for (std::int64_t k = 0; k < std::abs(position) - (position < 0 && repeats ? 1 : 0); ++k) {
    if (at + step < 0 || at + step >= count) {
      step = -step;
      if (repeats) continue;
    }
    at += step;
  }
  return at;
}

mr::image slow_pad(const mr::image& from, const mr::padding_sides& sides, const mr::padding_fill& fill) {
  const auto [height, width, channels] = from.shape();
  mr::image result({height + sides.top + sides.bottom, width + sides.left + sides.right, channels});
  for (std::size_t y = 0; y < result.shape()[0]; ++y)
    for (std::size_t x = 0; x < result.shape()[1]; ++x) {
      auto row = static_cast<std::int64_t>(y) - static_cast<std::int64_t>(sides.top);
      auto column = static_cast<std::int64_t>(x) - static_cast<std::int64_t>(sides.left);
      const bool inside = row >= 0 && row < static_cast<std::int64_t>(height) && column >= 0 &&
                          column < static_cast<std::int64_t>(width);
      const bool colored = !inside && fill.mode == mr::padding_mode::constant;
      if (!inside && !colored) {
        row = walked(fill.mode, row, static_cast<std::int64_t>(height));
        column = walked(fill.mode, column, static_cast<std::int64_t>(width));
      }
      for (std::size_t c = 0; c < channels; ++c)
        result(y, x, c) =
            colored ? fill.color[c] : from(static_cast<std::size_t>(row), static_cast<std::size_t>(column), c);
    }
  return result;
}

mr::padding_fill draw_fill(mr::rng& d) {
  constexpr std::array modes{mr::padding_mode::constant, mr::padding_mode::edge, mr::padding_mode::reflect,
                             mr::padding_mode::symmetric};
  return {.mode = modes[d.below(4)], .color = {static_cast<std::uint8_t>(d.below(256)), 20, 250}};
}

/// A plan and the pixels that slow functions compute from those of its first plan.
struct padded_pair {
  mr::picture plan;
  mr::image pixels;
  std::string steps{};

  /// One step of padding, then crops and flips.
  void take_steps(mr::rng& d) {
    const mr::padding_fill fill = draw_fill(d);
    for (int k = 0, end = static_cast<int>(d.between(1, 5)); k < end; ++k) {
      const auto [height, width, channels] = pixels.shape();
      const std::uint64_t step = k == 0 ? 0 : 1 + d.below(fill.mode == mr::padding_mode::constant ? 3 : 2);
      if (step == 0 || step == 3) {
        // Sometimes by more than the image.
        const std::uint64_t most = d.chance(0.2) ? 3 * std::max(height, width) : 9;
        const mr::padding_sides sides{.left = d.below(most), .top = d.below(most), .right = d.below(most),
                                      .bottom = d.below(most)};
        try {
          plan = plan.pad(sides, fill);
        } catch (const mr::data_error&) {
          return;   // only padding is visible
        }
        pixels = slow_pad(pixels, sides, fill);
        steps += " pad " + std::to_string(static_cast<int>(fill.mode));
      } else if (step == 1) {
        const std::size_t w = d.below(d.chance(0.3) ? std::min<std::size_t>(width, 4) : width) + 1;
        const std::size_t h = d.below(height) + 1;
        const mr::crop_box box{.left = d.below(width - w + 1), .top = d.below(height - h + 1), .width = w, .height = h};
        plan = plan.crop(box);
        pixels = slow::crop(pixels, box);
        steps += " crop";
      } else {
        plan = plan.flip();
        pixels = slow::flip(pixels);
        steps += " flip";
      }
    }
  }
};

std::vector<std::byte> photo_file(mr::rng& d, std::size_t most) {
  return mr::encode_jpeg(slow::photo(d.below(most) + 1, d.below(most) + 1, 3, d.bits()));
}

struct inversion final : mr::row_operation {
  void run(const mr::rgb_row& row, mr::scratch&) const override {
    for (std::uint8_t& value : row.pixels) value = static_cast<std::uint8_t>(255 - value);
  }
};

}  // namespace

TEST_CASE("padding, crops and flips have the pixels of slow loops, for each mode, format and target") {
  mr::rng d({.seed = 71});
  mr::scratch s;
  for (int i = 0; i < 400; ++i) {
    const auto file = photo_file(d, i % 7 == 0 ? 3 : 60);
    const int orientation = static_cast<int>(d.between(1, 8));
    const auto turned = slow::with_orientation(file, orientation);
    const mr::picture jpeg = mr::jpeg(slow::view(turned), {.apply_orientation = true});
    const auto png_file = mr::encode_png(jpeg.pixels(s));
    const bool from_png = d.chance(0.3);
    const mr::picture first = from_png ? mr::png(slow::view(png_file)) : jpeg;
    padded_pair p{.plan = first, .pixels = first.pixels(s)};
    p.take_steps(d);
    INFO(p.steps);
    CAPTURE(i);
    const std::size_t height = p.plan.height(), width = p.plan.width();
    REQUIRE(slow::same(p.plan.pixels(s), p.pixels));
    const auto inverted = p.plan.apply(std::make_shared<inversion>()).pixels(s);
    std::size_t wrong = 0;
    for (std::size_t k = 0; k < inverted.size(); ++k) wrong += inverted.span()[k] != 255 - p.pixels.span()[k] ? 1 : 0;
    std::vector<float> numbers(3 * height * width);
    mr::normalized_picture<float>(p.plan, {.mean = {}, .std = {1.0 / 255, 1.0 / 255, 1.0 / 255}}).render(numbers, s);
    for (std::size_t k = 0; k < height * width; ++k)
      for (std::size_t c = 0; c < 3; ++c)
        wrong += numbers[c * height * width + k] != static_cast<float>(p.pixels.span()[3 * k + c]) ? 1 : 0;
    const mr::padded_picture row(p.plan, {.to = {.width = width + d.below(5), .height = height + d.below(5)}});
    std::vector<std::uint8_t> bytes(3 * row.shape()[0] * row.shape()[1]);
    row.render(bytes, s);
    for (std::size_t y = 0; y < height; ++y)
      wrong += std::equal(&p.pixels(y, 0, 0), &p.pixels(y, 0, 0) + 3 * width, &bytes[3 * y * row.shape()[1]]) ? 0 : 1;
    REQUIRE(wrong == 0);
    if (!from_png) continue;
    const mr::image rgba = mr::rgba_picture(p.plan).pixels(s);
    for (std::size_t k = 0; k < height * width; ++k) {
      const std::uint8_t* const got = &rgba.span()[4 * k];
      wrong += std::equal(got, got + 3, &p.pixels.span()[3 * k]) && got[3] == 255 ? 0 : 1;
    }
    REQUIRE(wrong == 0);
  }
}

TEST_CASE("a resize after padding keeps the scale and the position, and colors do not blend into the image") {
  mr::rng d({.seed = 72});
  mr::scratch s;
  double worst = 0;
  for (int i = 0; i < 200; ++i) {
    const auto file = photo_file(d, 70);
    const mr::image stored = slow::decode(file);
    const mr::padding_fill fill{.color = {9, 200, 30}};
    slow::chained_picture p(mr::jpeg(slow::view(file)), 1);
    const auto crop_somewhere = [&] {
      const std::size_t width = d.below(p.picture.width()) + 1, height = d.below(p.picture.height()) + 1;
      p.crop({.left = d.below(p.picture.width() - width + 1), .top = d.below(p.picture.height() - height + 1),
              .width = width, .height = height});
    };
    p.pad_randomly(d, fill);
    if (d.chance(0.6)) crop_somewhere();
    if (p.axes.across.visible_count() == 0 || p.axes.down.visible_count() == 0) continue;
    p.resize(d.below(60) + 1, d.below(60) + 1);
    if (p.axes.across.visible_count() == 0 || p.axes.down.visible_count() == 0) continue;
    if (d.chance(0.5)) p.flip();
    p.pad_randomly(d, fill);
    if (d.chance(0.4)) crop_somewhere();
    INFO(p.steps);
    const mr::image got = p.picture.pixels(s);
    const auto weights_of = [](const slow::picture_axis& axis, std::int64_t o) {
      const double center = (axis.begin + slow::fraction::of(2 * o + 1, 2) * axis.step).real();
      const double reach = std::max(1.0, std::abs(axis.step.real()));
      const std::int64_t end = -(slow::fraction{-1, 1} * axis.most).floor();
      std::vector<std::pair<std::size_t, double>> weights;
      double sum = 0;
      for (std::int64_t k = axis.least.floor(); k < end; ++k)
        if (const double w = 1 - std::abs(static_cast<double>(k) + 0.5 - center) / reach; w > 0) {
          weights.emplace_back(k, w);
          sum += w;
        }
      for (auto& [k, w] : weights) w /= sum;
      return weights;
    };
    for (std::size_t y = 0; y < got.shape()[0]; ++y)
      for (std::size_t x = 0; x < got.shape()[1]; ++x) {
        if (!p.axes.shows(y, x)) {
          if (!std::equal(fill.color.begin(), fill.color.end(), &got(y, x, 0))) worst = 256;
          continue;
        }
        std::array<double, 3> expected{};
        for (const auto& [row, of_row] : weights_of(p.axes.down, static_cast<std::int64_t>(y)))
          for (const auto& [column, of_column] : weights_of(p.axes.across, static_cast<std::int64_t>(x)))
            for (std::size_t c = 0; c < 3; ++c) expected[c] += of_row * of_column * stored(row, column, c);
        for (std::size_t c = 0; c < 3; ++c)
          worst = std::max(worst, std::abs(got(y, x, c) - std::floor(expected[c] + 0.5)));
      }
  }
  CHECK(worst <= 1);
}

TEST_CASE("letterbox() has the sizes and the offsets of YOLO, and moves boxes and label maps with the image") {
  struct letterbox_case {
    std::size_t width, height, inner_width, inner_height, left, top;
  };
  // round(side * min(640 / width, 512 / height)) in Python, and round(margin / 2 - 0.1).
  constexpr letterbox_case cases[] = {{500, 375, 640, 480, 0, 16}, {375, 500, 384, 512, 128, 0},
                                      {1280, 721, 640, 360, 0, 76}, {1280, 723, 640, 362, 0, 75},
                                      {1280, 717, 640, 358, 0, 77}, {640, 512, 640, 512, 0, 0},
                                      {3000, 2, 640, 1, 0, 255}, {100, 81, 632, 512, 4, 0}};
  for (const auto& c : cases) {
    CAPTURE(c.width);
    CAPTURE(c.height);
    mr::image gray({c.height, c.width, 3});
    std::fill(gray.span().begin(), gray.span().end(), std::uint8_t{200});
    const auto file = mr::encode_png(gray);
    const mr::picture p = mr::png(slow::view(file)).letterbox({.width = 640, .height = 512});
    REQUIRE(p.shape() == std::array<std::size_t, 3>{512, 640, 3});
    const mr::image pixels = p.pixels();
    std::size_t wrong = 0;
    for (std::size_t y = 0; y < 512; ++y)
      for (std::size_t x = 0; x < 640; ++x) {
        const bool inside = x >= c.left && x < c.left + c.inner_width && y >= c.top && y < c.top + c.inner_height;
        wrong += pixels(y, x, 1) != (inside ? 200 : 114) ? 1 : 0;
      }
    CHECK(wrong == 0);
    const double w = static_cast<double>(c.width), h = static_cast<double>(c.height);
    const std::vector<mr::box> full{{.left = 0, .top = 0, .right = w, .bottom = h}};
    const double left = static_cast<double>(c.left), top = static_cast<double>(c.top);
    CHECK(p.geometry().boxes(full).boxes[0] ==
          mr::box{.left = left, .top = top, .right = left + static_cast<double>(c.inner_width),
                  .bottom = top + static_cast<double>(c.inner_height)});
  }
  const auto file = mr::encode_jpeg(slow::photo(30, 40, 3, 1));
  const mr::picture small = mr::jpeg(slow::view(file)).letterbox({.width = 64, .height = 64}, {.enlarge = false});
  const mr::image around = small.pixels();
  CHECK(slow::same(slow::crop(around, {.left = 12, .top = 17, .width = 40, .height = 30}),
                   mr::jpeg(slow::view(file)).pixels()));
  CHECK(around(16, 30, 0) == 114);
  CHECK(around(47, 30, 0) == 114);
}

TEST_CASE("a box beyond the image shows padding, and a random crop draws the row before the column") {
  const auto file = mr::encode_jpeg(slow::photo(30, 40, 3, 2));
  const mr::picture p = mr::jpeg(slow::view(file));
  const mr::padding_fill reflect{.mode = mr::padding_mode::reflect};
  const mr::image all = p.pixels();
  const auto expected = [&](const mr::outer_box& box, const mr::padding_fill& fill) {
    const mr::image wide = slow_pad(all, {.left = 50, .top = 50, .right = 50, .bottom = 50}, fill);
    return slow::crop(wide, {.left = static_cast<std::size_t>(box.left + 50),
                             .top = static_cast<std::size_t>(box.top + 50), .width = box.width, .height = box.height});
  };
  for (const mr::outer_box& box : {mr::outer_box{.left = -10, .top = 5, .width = 30, .height = 50},
                                   {.left = 3, .top = 4, .width = 5, .height = 6},
                                   {.left = -40, .top = -30, .width = 20, .height = 90},
                                   {.left = 45, .top = 35, .width = 9, .height = 9}})
    for (const mr::padding_fill& fill : {mr::padding_fill{.color = {1, 2, 3}}, reflect})
      CHECK(slow::same(p.crop_beyond(box, fill).pixels(), expected(box, fill)));
  mr::rng a({.seed = 5}), b({.seed = 5});
  for (int i = 0; i < 20; ++i) {
    const std::size_t top = b.below(30 + 8 - 32 + 1), left = b.below(40 + 8 - 32 + 1);
    const mr::picture crop = p.pad(4).random_crop(32, a);
    CHECK(slow::same(crop.pixels(), slow::crop(slow_pad(all, {4, 4, 4, 4}, {}),
                                               {.left = left, .top = top, .width = 32, .height = 32})));
  }
  CHECK(p.pad_to({.width = 41, .height = 20}).shape() == std::array<std::size_t, 3>{30, 41, 3});
}

TEST_CASE("plans that cannot be padded are refused") {
  const auto file = mr::encode_jpeg(slow::photo(30, 40, 3, 2));
  const mr::picture p = mr::jpeg(slow::view(file)), reflected = p.pad(2, {.mode = mr::padding_mode::reflect});
  const auto refused = [](const auto& act) {
    try {
      act();
    } catch (const mr::error& e) {
      return e.message();
    }
    return std::string("no error");
  };
  CHECK(refused([&] { static_cast<void>(reflected.resize(9, 9)); }) ==
        "an image cannot be resized after it was padded with copies of its pixels");
  const mr::crop_box all{.left = 2, .top = 2, .width = 40, .height = 30};
  CHECK(refused([&] { static_cast<void>(reflected.crop(all).resize(9, 9)); }) == "no error");
  CHECK(refused([&] { static_cast<void>(reflected.pad(1)); }) == "an image cannot have two kinds of padding");
  CHECK(refused([&] { static_cast<void>(p.pad(2).pad(1, {.color = {1, 1, 1}})); }) ==
        "an image cannot have two kinds of padding");
  CHECK(refused([&] { static_cast<void>(p.pad(33'000)); }).starts_with(
      "a padded image is too large: got 40 x 30 pixels and padding of 33000, 33000, 33000 and 33000 pixels"));
  CHECK(refused([&] { static_cast<void>(p.crop_beyond({.left = 50, .width = 4, .height = 4}).resize(2, 2)); }) ==
        "an image cannot be padded or resized if its crop contains only padding");
  CHECK(refused([&] { static_cast<void>(p.crop_beyond({.left = INT64_MIN, .width = 4, .height = 4})); })
            .starts_with("a padded image is too large"));
  CHECK(refused([&] { static_cast<void>(p.random_crop(64, *std::make_unique<mr::rng>(mr::rng({.seed = 1})))); })
            .starts_with("a crop does not fit into the image"));
}

TEST_CASE("a crop of a padded JPEG decodes only the rows that it shows") {
  auto file = mr::encode_jpeg(slow::photo(400, 64, 3, 3));
  mr::scratch s;
  const auto render_part = [&](const mr::padding_fill& fill) {
    return mr::jpeg(slow::view(file)).pad(8, fill).crop({.left = 0, .top = 0, .width = 80, .height = 60}).pixels(s);
  };
  const mr::padding_fill reflect{.mode = mr::padding_mode::reflect};
  const mr::image before = render_part({}), mirrored = render_part(reflect);
  file.resize(file.size() / 2);   // the lower half is missing
  CHECK(slow::same(render_part({}), before));
  CHECK(slow::same(render_part(reflect), mirrored));
  CHECK_THROWS_AS(static_cast<void>(mr::jpeg(slow::view(file)).pad(8).pixels(s)), mr::data_error);
}

TEST_CASE("fixed plans with padding have frozen digests") {
  mr::image dots({37, 53, 3});
  mr::rng d({.seed = 74});
  for (std::uint8_t& value : dots.span()) value = static_cast<std::uint8_t>(d.below(256));
  const auto file = mr::encode_png(dots);
  const mr::picture p = mr::png(slow::view(file));
  const auto digest_of = [](const mr::picture& plan) {
    std::uint32_t sum = 0;
    const mr::image pixels = plan.pixels();
    for (const std::uint8_t v : pixels.span()) sum = sum * 16'777'619U ^ v;
    return sum;
  };
  mr::rng random({.seed = 75});
  CHECK(digest_of(p.letterbox({.width = 96, .height = 80}).flip()) == 2'240'901'842);
  CHECK(digest_of(p.pad(4, {.mode = mr::padding_mode::reflect}).random_crop(32, random).random_flip(random)) ==
        2'437'027'774);
  CHECK(digest_of(p.crop_beyond({.left = -9, .top = 5, .width = 50, .height = 61}).resize(40, 44)) ==
        366'299'925);
}
