#include <millrace/image/any_picture.hpp>
#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/image/labels/label_map.hpp>
#include <millrace/image/png/png.hpp>
#include <millrace/image/png/png_encoder.hpp>
#include <millrace/item/record_builder.hpp>

#include "../planned_pictures.hpp"
#include "../slow_geometry.hpp"
#include "../slow_pictures.hpp"
#include "plain_libpng.hpp"
#include "png_files.hpp"

#include <algorithm>
#include <array>
#include <string>

#include <doctest/doctest.h>

namespace mr = millrace;
using slow::plain_libpng;

namespace {

/// The full image by libpng, alpha dropped.
mr::image by_libpng(std::span<const std::byte> file) {
  const plain_libpng reference(file, plain_libpng::as::rgba);
  REQUIRE(reference.error == "");
  mr::image image({reference.height, reference.width, 3});
  for (std::size_t y = 0; y < reference.height; ++y)
    for (std::size_t x = 0; x < reference.width; ++x)
      for (std::size_t c = 0; c < 3; ++c) image(y, x, c) = reference.row(y)[4 * x + c];
  return image;
}

template <class Act>
std::string message_of(const Act& act) {
  try {
    act();
  } catch (const mr::data_error& e) {
    CHECK(e.where().stage == "png");
    return e.message();
  }
  return "no error";
}

/// An eXIf chunk's payload with this orientation.
std::string exif_of(int orientation) {
  std::string tiff("MM\0*\0\0\0\10\0\1\1\22\0\3\0\0\0\1\0\0\0\0\0\0\0\0", 26);
  tiff[19] = static_cast<char>(orientation);
  return tiff;
}

}  // namespace

TEST_CASE("the full image has the pixels of libpng, for every kind") {
  mr::rng d({.seed = 1});
  mr::scratch s;
  slow::for_each_png_kind([&](slow::png_kind kind) {
    kind.width = d.below(60) + 1;
    kind.height = d.below(60) + 1;
    const auto file = slow::make_png(slow::random_samples(kind, d.bits()), {.seed = d.bits()});
    CAPTURE(kind.color);
    CAPTURE(kind.depth);
    const mr::picture p = mr::png(slow::view(file));
    CHECK(p.header().width == kind.width);
    CHECK(p.header().components == static_cast<int>(kind.channels()));
    REQUIRE(slow::same(p.pixels(s), by_libpng(file)));
    REQUIRE(slow::same(mr::any_picture(slow::view(file)).pixels(s), by_libpng(file)));
  });
  const mr::image photo = slow::photo(40, 50, 3, 1);
  CHECK(slow::same(mr::png(slow::view(mr::encode_png(photo))).pixels(), photo));
}

TEST_CASE("plans of a PNG are within one level of slow operations on its pixels, alone and together with JPEGs") {
  mr::rng d({.seed = 9});
  mr::scratch s;
  for (int round = 0; round < 40; ++round) {
    const std::size_t width = d.below(90) + 20, height = d.below(90) + 20;
    const mr::image photo = slow::photo(height, width, 3, d.bits());
    slow::png_samples samples{.kind = {.width = width, .height = height, .interlaced = d.chance(0.3)}};
    samples.sample.assign(photo.span().begin(), photo.span().end());
    const auto file = slow::make_png(samples, {.seed = d.bits()});
    const mr::crop_box box{.left = d.below(width / 2), .top = d.below(height / 2), .width = width / 2,
                           .height = height / 2};
    const std::size_t to = d.below(60) + 1;
    const mr::picture p = mr::png(slow::view(file)).crop(box).resize(to, to + 3).flip();
    const mr::image got = p.pixels(s);
    const auto expected = slow::flip(slow::resize(slow::real(slow::crop(photo, box)), to, to + 3));
    REQUIRE(slow::compare(got, expected).max <= 1);

    const auto jpeg_file = mr::encode_jpeg(photo);
    const mr::picture q = mr::jpeg(slow::view(jpeg_file)).resize(20, 30);
    const mr::image alone = q.pixels(s);
    std::vector<std::uint8_t> first(got.size()), second(alone.size()), third(got.size());
    const std::vector<const mr::picture*> items{&p, &q, &p};
    const std::vector<std::span<std::uint8_t>> rows{first, second, third};
    mr::picture::render_together(items, rows, s);
    REQUIRE(std::equal(first.begin(), first.end(), got.span().begin()));
    REQUIRE(std::equal(second.begin(), second.end(), alone.span().begin()));
    REQUIRE(third == first);
  }
}

TEST_CASE("a background is visible, pixel by pixel") {
  const auto samples = slow::random_samples({.width = 30, .height = 20, .color = 6}, 3);
  const auto file = slow::make_png(samples);
  const mr::rgb_color background{10, 100, 250};
  const mr::image dropped = mr::png(slow::view(file)).pixels();
  const mr::image over = mr::png(slow::view(file), {.background = background}).pixels();
  for (std::size_t y = 0; y < 20; ++y)
    for (std::size_t x = 0; x < 30; ++x)
      for (std::size_t c = 0; c < 3; ++c) {
        const unsigned a = samples.at(y, x, 3), v = samples.at(y, x, c) * a + background[c] * (255 - a);
        REQUIRE(dropped(y, x, c) == samples.at(y, x, c));
        REQUIRE(over(y, x, c) == (2 * v + 255) / 510);
      }
}

TEST_CASE("eXIf turns the image on request") {
  const mr::image photo = slow::photo(20, 31, 3, 1);
  slow::png_samples samples{.kind = {.width = 31, .height = 20}};
  samples.sample.assign(photo.span().begin(), photo.span().end());
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const auto file = slow::with_chunk(slow::make_png(samples), "eXIf", exif_of(orientation), "IDAT");
    CHECK(slow::same(mr::png(slow::view(file)).pixels(), photo));
    for (const mr::picture& p : {mr::png(slow::view(file), {.apply_orientation = true}),
                                 mr::any_picture(slow::view(file), {.jpeg = {.apply_orientation = true}})}) {
      const mr::image turned = p.pixels();
      const slow::picture_axes axes(31, 20, orientation);
      CAPTURE(orientation);
      REQUIRE(turned.shape()[0] == (orientation < 5 ? 20 : 31));
      for (std::size_t y = 0; y < turned.shape()[0]; ++y)
        for (std::size_t x = 0; x < turned.shape()[1]; ++x) {
          const auto [row, column] = axes.nearest(y, x);
          REQUIRE(turned(y, x, 0) == photo(row, column, 0));
        }
    }
  }
}

TEST_CASE("errors of a PNG name it, and damage below the crop is not detected") {
  const auto samples = slow::random_samples({.width = 40, .height = 40}, 1);
  const auto file = slow::make_png(samples, {.piece_bytes = 500});
  const std::vector<std::byte> cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(file.size() * 2 / 3));
  const mr::picture p = mr::png(slow::view(cut));
  CHECK(message_of([&] { static_cast<void>(p.pixels()); }).starts_with("the PNG is truncated: it ends after "));
  const mr::image upper = p.crop({.width = 40, .height = 20}).pixels();
  CHECK(slow::same(upper, slow::crop(by_libpng(file), {.width = 40, .height = 20})));
  CHECK(message_of([&] { static_cast<void>(mr::png(slow::view(file), {.limits = {.max_pixels = 1'599}})); }) ==
        "the PNG's header declares too many pixels: got 40 x 40 pixels, expected at most max_pixels = 1599");
  const auto wide = slow::make_png(slow::random_samples({.width = 65'536, .height = 1, .color = 0, .depth = 1}, 1));
  CHECK(message_of([&] { static_cast<void>(mr::png(slow::view(wide))); }) ==
        "the PNG is too large: got 65536 x 1 pixels, expected at most 65535 per side");

  mr::block_pool pool;
  mr::record_builder build(pool);
  build.begin("train-000.tar", "n01/0017", 512);
  const auto gif = slow::file_of_text("GIF89");
  std::copy(gif.begin(), gif.end(), build.add_field("png", gif.size()).begin());
  const mr::record r = build.finish();
  try {
    static_cast<void>(mr::png(r["png"]));
    FAIL("no error");
  } catch (const mr::data_error& e) {
    CHECK(e.where().key == "n01/0017");
    CHECK(e.where().shard == "train-000.tar");
    CHECK(e.message() == "a PNG was expected, but the bytes look like a GIF");
    CHECK(e.hint() == "Convert it to JPEG, PNG or WebP, or leave the sample out");
  }
}

TEST_CASE("label maps in PNGs keep their numbers, under any geometry") {
  mr::rng d({.seed = 4});
  for (int i = 0; i < 300; ++i) {
    const unsigned depths[] = {1, 2, 4, 8, 16}, depth = depths[d.below(5)];
    const slow::png_kind kind{.width = d.below(60) + 1, .height = d.below(60) + 1,
                              .color = depth < 16 && d.chance(0.6) ? 3U : 0U, .depth = depth,
                              .interlaced = d.chance(0.2)};
    const auto samples = slow::random_samples(kind, d.bits());
    const auto file = slow::make_png(samples, {.piece_bytes = d.below(200) + 1, .colors = 2, .seed = d.bits()});
    const auto picture = mr::encode_jpeg(mr::image({kind.height, kind.width, 3}));
    slow::chained_picture p(mr::jpeg(slow::view(picture)), 1);
    p.take_random_steps(d, 4, 70);
    const auto expect_same = [&](const auto& map) {
      const auto got = map.values();
      for (std::size_t y = 0; y < got.shape()[0]; ++y)
        for (std::size_t x = 0; x < got.shape()[1]; ++x) {
          const auto [row, column] = p.axes.nearest(y, x);
          REQUIRE(got(y, x) == samples.at(row, column, 0));
        }
    };
    CAPTURE(i);
    const mr::bytes field = slow::view(file);
    if (depth < 16) expect_same(mr::labels(field).apply(p.picture.geometry()));
    expect_same(mr::labels<std::uint16_t>(field).apply(p.picture.geometry()));
  }
}

TEST_CASE("PNGs that are not a label map are refused, and damaged ones") {
  const auto error = [](const std::vector<std::byte>& file) {
    try {
      static_cast<void>(mr::labels(mr::bytes::borrowed(file, "seg.png")).values());
    } catch (const mr::data_error& e) {
      return e.where().stage + ": " + e.message();
    }
    return std::string("no error");
  };
  const auto colors = slow::make_png(slow::random_samples({.width = 3, .height = 3}, 1));
  CHECK(error(colors) ==
        "labels: the field 'seg.png' is a PNG that is not a label map: got 3 channels, expected palette "
        "indices or gray");
  const auto deep = slow::make_png(slow::random_samples({.width = 3, .height = 3, .color = 0, .depth = 16}, 1));
  CHECK(error(deep) ==
        "labels: the field 'seg.png' is a label map of the wrong sample type: got 16 bits, expected 8 bits");
  auto file = slow::make_png(slow::random_samples({.width = 30, .height = 30, .color = 3}, 1));
  CHECK(error(file) == "no error");
  file.resize(file.size() - 100);
  CHECK(error(file).starts_with("png: the PNG is truncated: it ends after "));
  const slow::png_kind forged{.width = 60'000, .height = 2'900, .color = 3};
  CHECK(error(slow::png_with_stream(forged, {}, slow::deflated("", {}))).find("expected enough for 174002900 bytes") !=
        std::string::npos);
  file.resize(20);
  CHECK(error(file) == "png: the PNG ends inside its chunk IHDR at byte 8");
}
