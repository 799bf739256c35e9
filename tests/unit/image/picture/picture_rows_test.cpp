// Rows of batches: padded images, mosaics, normalized images, and lists of images.
#include <millrace/device/normalize.hpp>
#include <millrace/image/any_picture.hpp>
#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/image/picture/mosaic_picture.hpp>
#include <millrace/image/picture/padded_picture.hpp>
#include <millrace/image/picture/picture_list.hpp>
#include <millrace/image/png/png_encoder.hpp>
#include <millrace/item/column/columns.hpp>
#include <millrace/millrace.hpp>

#include "../planned_pictures.hpp"
#include "../random_jpegs.hpp"
#include "../slow_pictures.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace mr = millrace;

namespace {

struct inversion final : mr::row_operation {
  void run(const mr::rgb_row& row, mr::scratch&) const override {
    for (std::uint8_t& value : row.pixels) value = static_cast<std::uint8_t>(255 - value);
  }
};

/// The image's own pixels, copied into a row.
std::vector<std::uint8_t> expected_of(const mr::picture& p, const mr::padding_options& o, mr::scratch& s) {
  const mr::image pixels = p.pixels(s);
  std::vector<std::uint8_t> row;
  for (std::size_t y = 0; y < o.to.height; ++y)
    for (std::size_t x = 0; x < o.to.width; ++x)
      for (std::size_t c = 0; c < 3; ++c)
        row.push_back(y < p.height() && x < p.width() ? pixels(y, x, c) : o.color[c]);
  return row;
}

}  // namespace

TEST_CASE("a padded image is the image at the upper left of its row, alone and with others") {
  mr::rng d({.seed = 12});
  mr::scratch s;
  for (int round = 0; round < 60; ++round) {
    std::vector<std::vector<std::byte>> files;
    for (std::size_t i = 0; i < mr::padded_picture::together; ++i) files.push_back(slow::draw_file(d, 90).bytes);
    std::vector<mr::padded_picture> pictures;
    std::vector<std::vector<std::uint8_t>> rows, expected;
    for (const auto& file : files) {
      const mr::jpeg_options options{
          .quality = d.chance(0.5) ? mr::picture_quality::fast : mr::picture_quality::exact,
          .decoder = d.chance(0.3) ? mr::picture_decoder::libjpeg : mr::picture_decoder::automatic};
      mr::picture p = slow::planned(mr::jpeg(slow::view(file), options), mr::rng({.seed = d.bits()}));
      if (d.chance(0.3)) p = p.apply(std::make_shared<inversion>());
      const bool exact = d.chance(0.3);
      const mr::padding_options o{.to = {.width = exact ? p.width() : p.width() + d.below(40),
                                         .height = exact ? p.height() : p.height() + d.below(40)},
                                  .color = {static_cast<std::uint8_t>(d.below(256)), 7, 9}};
      pictures.emplace_back(p, o);
      expected.push_back(expected_of(p, o, s));
      rows.emplace_back(expected.back().size(), std::uint8_t{99});
      REQUIRE(pictures.back().shape() == std::array<std::size_t, 3>{o.to.height, o.to.width, 3});
      REQUIRE(pictures.back().size() == std::array<std::int32_t, 2>{static_cast<std::int32_t>(p.height()),
                                                                   static_cast<std::int32_t>(p.width())});
    }
    std::vector<const mr::padded_picture*> items;
    for (const auto& p : pictures) items.push_back(&p);
    mr::padded_picture::render_together(items, std::vector<std::span<std::uint8_t>>(rows.begin(), rows.end()), s);
    for (std::size_t i = 0; i < pictures.size(); ++i) {
      REQUIRE(rows[i] == expected[i]);
      std::vector<std::uint8_t> alone(expected[i].size(), 55);
      pictures[i].render(alone, s);
      REQUIRE(alone == expected[i]);
    }
  }
}

TEST_CASE("resize_within() fits an image into a size and keeps its aspect ratio") {
  const auto size_of = [](std::size_t width, std::size_t height, mr::picture_size into) {
    const auto file = mr::encode_jpeg(slow::photo(height, width, 3, 1));
    const mr::picture p = mr::jpeg(slow::view(file)).resize_within(into);
    return std::array<std::size_t, 2>{p.width(), p.height()};
  };
  CHECK(size_of(500, 375, {.width = 1333, .height = 800}) == std::array<std::size_t, 2>{1066, 800});
  CHECK(size_of(500, 100, {.width = 1333, .height = 800}) == std::array<std::size_t, 2>{1333, 266});
  CHECK(size_of(100, 100, {.width = 50, .height = 60}) == std::array<std::size_t, 2>{50, 50});
  CHECK(size_of(400, 2, {.width = 20, .height = 20}) == std::array<std::size_t, 2>{20, 1});
  CHECK(size_of(2, 400, {.width = 20, .height = 20}) == std::array<std::size_t, 2>{1, 20});
  CHECK_THROWS_AS(size_of(20, 20, {.width = 0, .height = 20}), mr::setup_error);
  CHECK_THROWS_AS(size_of(20, 20, {.width = 70'000, .height = 70'000}), mr::setup_error);
}

TEST_CASE("an image that is larger than its row is refused") {
  const auto file = mr::encode_jpeg(slow::photo(20, 30, 3, 1));
  const mr::picture p = mr::jpeg(slow::view(file));
  for (const mr::picture_size to : {mr::picture_size{.width = 29, .height = 20}, {.width = 30, .height = 19}})
    CHECK_THROWS_WITH_AS(mr::padded_picture(p, {.to = to}),
                         doctest::Contains("an image is larger than its padded row: got 30 x 20 pixels"),
                         mr::setup_error);
  mr::scratch s;
  std::vector<std::uint8_t> row(3 * 30 * 20 + 1);
  CHECK_THROWS_AS(mr::padded_picture(p, {.to = {.width = 30, .height = 20}}).render(row, s), mr::setup_error);
}

TEST_CASE("a mosaic has each image in its quarter, with a corner at the center, and its boxes") {
  mr::rng d({.seed = 81});
  mr::scratch s;
  for (int round = 0; round < 60; ++round) {
    std::vector<std::vector<std::byte>> files;
    for (int i = 0; i < 4; ++i)
      files.push_back(mr::encode_jpeg(slow::photo(d.below(70) + 1, d.below(70) + 1, 3, d.bits())));
    const auto image = [&](std::size_t i) {
      const mr::picture p = mr::jpeg(slow::view(files[i]));
      return round % 2 == 0 ? p : p.flip();
    };
    const mr::mosaic_options options{.size = {.width = d.below(90) + 2, .height = d.below(90) + 2},
                                     .color = {1, 99, 200},
                                     .min_center = round % 3 == 0 ? 0 : d.uniform(0, 0.5)};
    mr::rng same({.seed = d.bits()}), draws = same;
    const mr::mosaic_picture all({image(0), image(1), image(2), image(3)}, options, same);
    const auto center = [&](std::size_t side) {
      const auto least = std::max<std::size_t>(1, static_cast<std::size_t>(static_cast<double>(side) *
                                                                           options.min_center));
      return least + draws.below(side - 2 * least + 1);
    };
    const auto [height, width, channels] = all.shape();
    const std::size_t cy = center(height), cx = center(width);
    CAPTURE(cx);
    CAPTURE(cy);
    std::vector<std::uint8_t> row(height * width * 3), expected;
    all.render(row, s);
    std::array<mr::image, 4> pixels{image(0).pixels(s), image(1).pixels(s), image(2).pixels(s), image(3).pixels(s)};
    for (std::size_t y = 0; y < height; ++y)
      for (std::size_t x = 0; x < width; ++x) {
        const mr::image& own = pixels[(y >= cy ? 2 : 0) + (x >= cx ? 1 : 0)];
        const std::size_t own_y = y >= cy ? y - cy : y + own.shape()[0] - cy;   // wraps around outside
        const std::size_t own_x = x >= cx ? x - cx : x + own.shape()[1] - cx;
        for (std::size_t c = 0; c < 3; ++c)
          expected.push_back(own_y < own.shape()[0] && own_x < own.shape()[1] ? own(own_y, own_x, c)
                                                                              : options.color[c]);
      }
    REQUIRE(row == expected);
    for (std::size_t i = 0; i < 4; ++i) {
      const double w = static_cast<double>(pixels[i].shape()[1]), h = static_cast<double>(pixels[i].shape()[0]);
      const double x = static_cast<double>(cx), y = static_cast<double>(cy);
      const std::vector<mr::box> full{{.left = 0, .top = 0, .right = w, .bottom = h}};
      const mr::box got = all.boxes(i, full).boxes.at(0);
      CHECK(got == mr::box{.left = i % 2 == 1 ? x : std::max(0.0, x - w), .top = i >= 2 ? y : std::max(0.0, y - h),
                           .right = i % 2 == 0 ? x : std::min(static_cast<double>(width), x + w),
                           .bottom = i < 2 ? y : std::min(static_cast<double>(height), y + h)});
    }
    CHECK_THROWS_AS(all.render(std::span(row).first(row.size() - 1), s), mr::setup_error);
  }
  mr::rng random({.seed = 1});
  const auto file = mr::encode_jpeg(mr::image({4, 4, 3}));
  const mr::picture p = mr::jpeg(slow::view(file));
  CHECK_THROWS_WITH_AS(mr::mosaic_picture({p, p, p, p}, {.size = {.width = 1, .height = 9}}, random),
                       doctest::Contains("got size 1 x 9 and min_center 0.250000, expected sides from 2"),
                       mr::setup_error);
}

namespace {

constexpr mr::pixel_normalization imagenet{.mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225}};

/// The u8 image, and its normalize().
template <class T>
mr::tensor<T, 4> expected_of(const mr::picture& p, mr::scratch& s) {
  const mr::image pixels = p.pixels(s);
  const auto [height, width, channels] = pixels.shape();
  mr::tensor<T, 4> numbers({1, channels, height, width});
  mr::normalize<T>({.data = pixels.data(), .shape = {1, height, width, channels}},
                   {.data = numbers.data(), .shape = numbers.shape()},
                   {.mean = {imagenet.mean[0], imagenet.mean[1], imagenet.mean[2]},
                    .std = {imagenet.std[0], imagenet.std[1], imagenet.std[2]}, .layout = mr::image_layout::nchw});
  return numbers;
}

template <class T>
bool equal(const mr::tensor<T, 4>& expected, const std::vector<T>& row) {
  return row.size() == expected.size() && std::memcmp(row.data(), expected.data(), row.size() * sizeof(T)) == 0;
}

template <class T>
void check_against_normalize(std::uint64_t seed) {
  mr::rng d({.seed = seed});
  mr::scratch s;
  constexpr std::size_t together = mr::normalized_picture<T>::together;
  for (int round = 0; round < 25; ++round) {
    std::vector<std::vector<std::byte>> files;
    for (std::size_t i = 0; i < together; ++i) files.push_back(slow::draw_file(d, 90).bytes);
    const mr::jpeg_options options{
        .quality = d.chance(0.5) ? mr::picture_quality::fast : mr::picture_quality::exact,
        .decoder = d.chance(0.3) ? mr::picture_decoder::libjpeg : mr::picture_decoder::automatic};
    std::vector<mr::normalized_picture<T>> pictures;
    std::vector<std::vector<T>> rows;
    std::vector<const mr::normalized_picture<T>*> items;
    std::vector<std::span<T>> places;
    for (std::size_t i = 0; i < together; ++i) {
      const mr::rng plan({.seed = seed, .sample = d.bits()});
      pictures.emplace_back(slow::planned(mr::jpeg(slow::view(files[i]), options), plan), imagenet);
      const auto shape = pictures.back().shape();
      rows.emplace_back(shape[0] * shape[1] * shape[2]);
    }
    for (std::size_t i = 0; i < together; ++i) {
      items.push_back(&pictures[i]);
      places.emplace_back(rows[i]);
    }
    mr::normalized_picture<T>::render_together(items, places, s);
    for (std::size_t i = 0; i < together; ++i) {
      CAPTURE(round);
      CAPTURE(i);
      const auto expected = expected_of<T>(pictures[i].plan(), s);
      REQUIRE(pictures[i].shape() == std::array{expected.shape()[1], expected.shape()[2], expected.shape()[3]});
      REQUIRE(equal(expected, rows[i]));
      std::vector<T> alone(rows[i].size());
      pictures[i].render(alone, s);
      REQUIRE(equal(expected, alone));
    }
  }
}

struct example {
  mr::normalized_picture<mr::f16> pixels;
  std::int32_t label;
};

}  // namespace

TEST_CASE("a normalized picture is the normalized u8 image, alone and with others, by either decoder") {
  check_against_normalize<float>(41);
  check_against_normalize<mr::f16>(42);
  check_against_normalize<mr::bf16>(43);
}

TEST_CASE("normalized images are a column of a batch") {
  mr::rng d({.seed = 44});
  std::vector<std::vector<std::byte>> files;
  for (int i = 0; i < 5; ++i) files.push_back(slow::draw_file(d, 60).bytes);
  const auto plan_of = [&](int i) { return mr::jpeg(slow::view(files[static_cast<std::size_t>(i)])).resize(24, 32); };
  const std::vector<int> numbers{0, 1, 2, 3, 4};
  auto flow = mr::from(numbers) | mr::map([&](int i) { return example{{plan_of(i), imagenet}, i}; }) |
              mr::batch<&example::pixels, &example::label>({.size = 5});
  mr::session run{std::move(flow), {.threads = 2}};
  mr::scratch s;
  std::size_t batches = 0;
  for (auto& b : run) {
    const auto pixels = b.get<&example::pixels>();
    const auto labels = b.get<&example::label>();
    REQUIRE(pixels.shape == std::array<std::size_t, 4>{5, 3, 24, 32});
    for (std::size_t row = 0; row < 5; ++row) {
      const auto expected = expected_of<mr::f16>(plan_of(labels.data[row]), s);
      CHECK(std::memcmp(pixels.data + row * expected.size(), expected.data(), expected.size() * sizeof(mr::f16)) == 0);
    }
    ++batches;
  }
  CHECK(batches == 1);
}

TEST_CASE("invalid means and deviations are refused, and a row of another size") {
  mr::rng d({.seed = 45});
  const auto file = slow::draw_file(d, 30).bytes;
  const auto plan = mr::jpeg(slow::view(file)).resize(4, 6);
  CHECK_THROWS_WITH_AS(mr::normalized_picture<float>(plan, {.std = {1, 0, 1}}),
                       doctest::Contains("std 0.000000 in channel 1"), mr::setup_error);
  const mr::normalized_picture<float> numbers(plan, {});
  mr::scratch s;
  std::vector<float> row(71);
  CHECK_THROWS_WITH_AS(numbers.render(row, s), doctest::Contains("got 71 elements, expected height * width * 3"),
                       mr::setup_error);
}

// The rows of a column of lists in a slot.

namespace {

struct listed {
  mr::picture_list pictures;
};

}  // namespace

TEST_CASE("rows of lists are rendered at their final places, and rows out of order are moved there") {
  constexpr std::size_t height = 12, width = 16, image_bytes = height * width * 3, most = 5;
  constexpr mr::picture_list_options options{.max_pictures = most, .size = {.width = width, .height = height}};
  mr::block_pool pool;
  const auto columns_of = [](const listed& first) {
    mr::detail::columns<&listed::pictures> all;
    all.fix_shapes(first, 4);
    return all;
  };
  std::vector<listed> items;
  std::vector<std::uint8_t> expected;
  for (const std::size_t count : {2, 0, 5, 3}) {
    std::vector<mr::picture> list;
    for (std::size_t i = 0; i < count; ++i) {
      list.push_back(mr::any_picture(pool.copy(mr::encode_png(slow::photo(height, width, 3, 10 * count + i)))));
      const mr::image pixels = list.back().pixels();
      expected.insert(expected.end(), pixels.span().begin(), pixels.span().end());
    }
    items.push_back({mr::picture_list(std::move(list), options)});
  }
  const auto columns = columns_of(items[0]);
  const auto lists = columns.new_lists();
  mr::scratch memory;
  for (const bool in_order : {true, false}) {
    std::vector<std::byte> slot(columns.batch_bytes());
    for (std::size_t i = 0; i < 2; ++i) {
      const std::size_t first = in_order ? 2 * i : 2 - 2 * i;
      const listed* const two[] = {&items[first], &items[first + 1]};
      columns.place_lists(two, first, *lists);
      columns.render(two, slot.data(), first, memory, lists.get());
    }
    const auto starts_with_images = [&] {
      const auto* const values = slot.data() + slot.size() - mr::detail::aligned_column_bytes(4 * most * image_bytes);
      return std::memcmp(values, expected.data(), expected.size()) == 0;
    };
    CHECK(starts_with_images() == in_order);
    CHECK(columns.close(slot.data(), 4, lists.get()).padded_to[0] == 10);
    CHECK(starts_with_images());
    for (auto& column : *lists) column.clear();
  }
}
