#include <millrace/base/error.hpp>
#include <millrace/image/augment/photometric_plan.hpp>
#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/image/picture/rgba_picture.hpp>
#include <millrace/image/png/png.hpp>
#include <millrace/image/png/png_rows.hpp>
#include <millrace/measure/values/event_names.hpp>

#include "../planned_pictures.hpp"
#include "../slow_pictures.hpp"
#include "png_files.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

namespace mr = millrace;
using mr::detail::png_color;

namespace {

std::vector<std::byte> small(unsigned color = 2, unsigned depth = 8) {
  return slow::make_png(slow::random_samples({.width = 5, .height = 4, .color = color, .depth = depth}, 1));
}

std::string message_of(std::span<const std::byte> file, const mr::detail::png_limits& limits = {}) {
  try {
    (void)mr::detail::read_png_header(file, limits);
  } catch (const mr::data_error& e) {
    CHECK(e.where().stage == "png");
    CHECK_FALSE(e.hint().empty());
    return e.message();
  }
  return "no error";
}

/// The file with another IHDR, whose CRC is right.
std::vector<std::byte> with_head(std::vector<std::byte> file, std::size_t at, std::size_t value,
                                 std::size_t bytes = 1) {
  std::string head(slow::text_of_file(file).substr(16, 13));
  for (std::size_t i = 0; i < bytes; ++i) head[at + i] = static_cast<char>(value >> 8 * (bytes - 1 - i) & 255);
  const auto chunk = slow::file_of_text(slow::chunk_of("IHDR", head));
  std::copy(chunk.begin(), chunk.end(), file.begin() + 8);
  return file;
}

}  // namespace

TEST_CASE("the header contains the values of the chunks") {
  auto file = slow::make_png(slow::random_samples({.width = 70'000, .height = 2, .color = 3, .depth = 4,
                                                   .interlaced = true}, 1), {.colors = 9});
  file = slow::with_chunk(file, "tRNS", "\1\2\3", "IDAT");
  file = slow::with_chunk(file, "eXIf", "II*", "tRNS");
  file = slow::with_chunk(file, "tEXt", "whatever", "tRNS");
  const auto h = mr::detail::read_png_header(file);
  CHECK(h.width == 70'000);
  CHECK(h.height == 2);
  CHECK(h.depth == 4);
  CHECK(h.color == png_color::palette);
  CHECK(h.interlaced);
  CHECK(h.palette.size() == 27);
  CHECK(slow::text_of_file(h.transparency) == "\1\2\3");
  CHECK(h.transparency_intact);
  CHECK(slow::text_of_file(h.exif) == "II*");
  CHECK(slow::text_of_file(std::span(file).subspan(h.data_at + 4, 4)) == "IDAT");
  CHECK(h.channels() == 1);
  CHECK(h.filter_bytes() == 1);
  CHECK(h.row_bytes(3) == 2);
}

TEST_CASE("other files are recognized by their first bytes") {
  CHECK(message_of({}) == "a PNG begins with 89 50 4e 47 0d 0a 1a 0a, but these 0 bytes");
  CHECK(message_of(slow::file_of_text("\xff\xd8\xff")) ==
        "a PNG begins with 89 50 4e 47 0d 0a 1a 0a, but these 3 bytes begin with ff d8 ff");
  CHECK(message_of(slow::file_of_text("\x89PNG\n\x1a\n.....")) ==
        "a PNG begins with 89 50 4e 47 0d 0a 1a 0a, but these 12 bytes begin with "
        "89 50 4e 47 0a 1a 0a 2e");
}

TEST_CASE("an impossible IHDR is refused") {
  const auto file = small();
  CHECK(message_of(with_head(file, 0, 0, 4)) ==
        "the PNG's IHDR declares invalid sides: got 0 x 4 pixels, expected 1 to 2147483647 per side");
  CHECK(message_of(with_head(file, 4, 0x8000'0000, 4)) ==
        "the PNG's IHDR declares invalid sides: got 5 x 2147483648 pixels, expected 1 to 2147483647 per side");
  CHECK(message_of(with_head(file, 11, 1)) ==
        "the PNG's IHDR declares an unknown method: got compression 0, filter 1, interlace 0, "
        "expected compression 0, filter 0, and interlace 0 or 1");
  CHECK(message_of(with_head(file, 12, 2)) ==
        "the PNG's IHDR declares an unknown method: got compression 0, filter 0, interlace 2, "
        "expected compression 0, filter 0, and interlace 0 or 1");
  CHECK(message_of(with_head(file, 10, 9)) ==
        "the PNG's IHDR declares an unknown method: got compression 9, filter 0, interlace 0, "
        "expected compression 0, filter 0, and interlace 0 or 1");
  std::size_t possible = 0;
  for (std::size_t color = 0; color < 256; ++color)
    for (std::size_t depth = 0; depth < 256; ++depth) {
      const std::string message = message_of(with_head(with_head(file, 9, color), 8, depth));
      if (message == "no error") ++possible;
      else
        REQUIRE(message == "the PNG's IHDR declares an invalid pixel format: got color type " + std::to_string(color) +
                               " with " + std::to_string(depth) +
                               " bits per sample, expected a combination that PNG defines");
    }
  CHECK(possible == 15);
}

TEST_CASE("the size is limited before anything is allocated") {
  const auto file = with_head(with_head(small(), 0, 1'000'000, 4), 4, 1'000'000, 4);
  CHECK(message_of(file) ==
        "the PNG's header declares too many pixels: got 1000000 x 1000000 pixels, expected at most "
        "max_pixels = 178956970");
  CHECK(message_of(file, {.max_pixels = 1'000'000'000'000}) == "no error");
  CHECK(message_of(small(), {.max_pixels = 19}) ==
        "the PNG's header declares too many pixels: got 5 x 4 pixels, expected at most max_pixels = 19");
  CHECK(message_of(small(), {.max_pixels = 20}) == "no error");
}

TEST_CASE("chunks before the image data are checked") {
  const auto file = small(3, 8);
  const std::string text(slow::text_of_file(file));
  const auto changed = [&](std::size_t at, int by = 1) {
    auto changed = file;
    changed[at] ^= static_cast<std::byte>(by);
    return changed;
  };
  const std::size_t palette = text.find("PLTE");
  CHECK(message_of(changed(palette + 4)).starts_with("the PNG's chunk PLTE at byte 33 has a wrong CRC: got "));
  CHECK(message_of(changed(16)).starts_with("the PNG's chunk IHDR at byte 8 has a wrong CRC: got "));
  CHECK(message_of(changed(palette + 4), {.check_sums = false}) == "no error");
  CHECK(message_of(changed(palette, 0x80)) ==
        "the PNG has a chunk at byte 33 with an invalid name: got '\\xd0LTE'");
  CHECK(message_of(slow::with_chunk(file, "caNT", "be wrong", "IDAT")) == "no error");
  auto ancillary = slow::with_chunk(file, "tRNS", "abc", "IDAT");
  const std::size_t trns = slow::text_of_file(ancillary).find("tRNS");
  ancillary[trns + 5] ^= std::byte{1};
  CHECK(message_of(ancillary) == "no error");
  CHECK_FALSE(mr::detail::read_png_header(ancillary).transparency_intact);
  auto exif = slow::with_chunk(file, "eXIf", "abc", "IDAT");
  exif[slow::text_of_file(exif).find("eXIf") + 5] ^= std::byte{1};
  CHECK(mr::detail::read_png_header(exif).exif.empty());
  CHECK(message_of(slow::with_chunk(file, "CgBI", "abcd", "IDAT")) ==
        "the PNG has the critical chunk CgBI at byte " + std::to_string(text.find("IDAT") - 4) +
            ", which this decoder does not support");
  CHECK(message_of(slow::with_chunk(file, "tEXt", "abcd", "IHDR")) ==
        "the PNG's first chunk is tEXt, expected IHDR");
  CHECK(message_of(slow::with_chunk(file, "IDAT", "abcd", "IHDR")) ==
        "the PNG's first chunk is IDAT, expected IHDR");
  CHECK(message_of(slow::with_chunk(file, "IHDR", text.substr(16, 13), "PLTE")) ==
        "the PNG has two IHDR chunks, expected one");
  CHECK(message_of(slow::with_chunk(file, "IHDR", text.substr(16, 12), "IHDR")) ==
        "the PNG's IHDR has the wrong size: got 12 bytes, expected 13");
  CHECK(message_of(slow::with_chunk(file, "IEND", "", "IDAT")) == "the PNG has no image data before its IEND");
  CHECK(message_of(slow::with_chunk(file, "PLTE", "abc", "IDAT")) == "the PNG has two palettes");
  const auto plain = slow::file_of_text(text.substr(0, 33) + text.substr(text.find("IDAT") - 4));
  for (const std::size_t bytes : {0U, 4U, 771U})
    CHECK(message_of(slow::with_chunk(plain, "PLTE", std::string(bytes, 'a'), "IDAT")) ==
          "the PNG's palette has the wrong size: got " + std::to_string(bytes) +
              " bytes, expected 3 per color and at most 768");
  CHECK(message_of(slow::with_chunk(plain, "PLTE", std::string(768, 'a'), "IDAT")) == "no error");
  CHECK(message_of(slow::with_chunk(small(2), "PLTE", "abcd", "IDAT")) == "no error");
  CHECK(message_of(slow::with_chunk(small(0), "PLTE", "abcd", "IDAT")) == "no error");
}

TEST_CASE("a header that is cut anywhere is an error") {
  const auto file = slow::with_chunk(small(3, 8), "tEXt", "abcd", "IDAT");
  const std::size_t data = slow::text_of_file(file).find("IDAT") - 4;
  for (std::size_t cut = 8; cut < data + 8; ++cut) {
    const std::string message = message_of(std::span(file).first(cut));
    CAPTURE(cut);
    CAPTURE(message);
    REQUIRE((message == "the PNG ends after " + std::to_string(cut) + " bytes, before its image data" ||
             message.starts_with("the PNG ends inside its chunk ")));
  }
  CHECK(message_of(std::span(file).first(data + 8)) == "no error");
}

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
