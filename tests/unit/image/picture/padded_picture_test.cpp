#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/image/picture/padded_picture.hpp>

#include "../random_jpegs.hpp"
#include "../planned_pictures.hpp"

#include <doctest/doctest.h>

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
