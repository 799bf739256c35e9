#include <millrace/base/crc32c.hpp>
#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/image/labels/label_map.hpp>
#include <millrace/image/labels/mosaic_labels.hpp>
#include <millrace/item/record_builder.hpp>

#include "../label_files.hpp"
#include "../slow_geometry.hpp"
#include "../slow_pictures.hpp"

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

namespace mr = millrace;

namespace {

mr::bytes named(const std::string& file, const char* name = "pgm") { return mr::bytes::borrowed(file, name); }

/// Whether a rendered map of numbers has the samples that fractions select.
template <class T>
bool holds_numbers(const mr::label_map<T>& map, const slow::picture_axes& axes, std::size_t stored_width) {
  const auto got = map.values();
  if (got.shape()[0] != static_cast<std::size_t>(axes.down.count) ||
      got.shape()[1] != static_cast<std::size_t>(axes.across.count))
    return false;
  for (std::size_t y = 0; y < got.shape()[0]; ++y)
    for (std::size_t x = 0; x < got.shape()[1]; ++x) {
      if (!axes.shows(y, x)) {
        if (got(y, x) != 255) return false;
        continue;
      }
      const auto [row, column] = axes.nearest(y, x);
      if (got(y, x) != static_cast<T>(row * stored_width + column)) return false;
    }
  return true;
}

template <class Act>
std::string message_of(const Act& act) {
  try {
    act();
  } catch (const mr::data_error& e) {
    return e.message() + ". " + e.hint();
  }
  return "no error";
}

std::string opened(const std::string& file, const char* name = "pgm") {
  return message_of([&] { static_cast<void>(mr::labels(named(file, name))); });
}

}  // namespace

TEST_CASE("a map of numbers, rendered by any chain of steps in any orientation, contains the nearest source pixels") {
  mr::rng d({.seed = 21});
  for (int i = 0; i < 400; ++i) {
    const std::size_t width = d.below(i % 9 == 0 ? 3 : 90) + 1, height = d.below(i % 9 == 1 ? 3 : 90) + 1;
    const int orientation = static_cast<int>(d.between(1, 8));
    const auto file = slow::with_orientation(mr::encode_jpeg(mr::image({height, width, 3})), orientation);
    const bool turns = d.chance(0.7);
    const auto numbers = slow::labels::of_numbers(width, height);
    const std::string map = d.chance(0.5) ? slow::pgm(numbers, 16) : slow::npy(numbers, 16);
    slow::chained_picture p(mr::jpeg(slow::view(file), {.apply_orientation = turns}), turns ? orientation : 1);
    p.take_random_steps(d, 6, 120, i % 2 == 1);
    CAPTURE(width);
    CAPTURE(height);
    CAPTURE(orientation);
    INFO(p.steps);
    const mr::geometry g = p.picture.geometry();
    CHECK(std::array{g.height(), g.width()} == std::array{p.picture.height(), p.picture.width()});
    REQUIRE(holds_numbers(mr::labels<std::uint16_t>(named(map)).apply(g), p.axes, width));
  }
}

TEST_CASE("steps after a crop never show removed pixels, also where resizes return to the scale of the source") {
  const auto file = slow::with_orientation(mr::encode_jpeg(mr::image({50, 24, 3})), 8);
  slow::chained_picture p(mr::jpeg(slow::view(file), {.apply_orientation = true}), 8);
  p.crop({.left = 0, .top = 2, .width = 48, .height = 19});
  p.pad({.left = 7, .top = 4, .right = 1, .bottom = 10});
  p.resize(111, 21);
  p.resize(46, 43);
  p.resize(54, 56);   // 56 columns as before the resizes; the last one shows a part of the padding
  p.resize(97, 47);
  const std::string map = slow::npy(slow::labels::of_numbers(24, 50), 16);
  CHECK(holds_numbers(mr::labels<std::uint16_t>(named(map)).apply(p.picture.geometry()), p.axes, 24));
}

TEST_CASE("a map that was drawn on the turned image is rendered by the upright geometry") {
  mr::rng d({.seed = 22});
  for (int orientation = 1; orientation <= 8; ++orientation)
    for (int i = 0; i < 25; ++i) {
      const std::size_t width = d.below(60) + 2, height = d.below(60) + 2;
      const auto file = slow::with_orientation(mr::encode_jpeg(mr::image({height, width, 3})), orientation);
      slow::chained_picture p(mr::jpeg(slow::view(file), {.apply_orientation = true}), orientation);
      const std::size_t turned_width = p.picture.width();
      // The same steps, for an image that was turned before it was stored.
      p.axes = slow::picture_axes(turned_width, p.picture.height(), 1);
      const auto numbers = slow::labels::of_numbers(turned_width, p.picture.height());
      p.take_random_steps(d, 4, 80, i % 2 == 1);
      CAPTURE(orientation);
      INFO(p.steps);
      const mr::geometry upright = p.picture.geometry().upright();
      CHECK(upright.orientation() == 1);
      CHECK(upright.source().width == turned_width);
      CHECK(upright.mirrored() == (p.axes.across.step.over < 0));
      const std::string map = slow::pgm(numbers, 16);
      REQUIRE(holds_numbers(mr::labels<std::uint16_t>(named(map)).apply(upright), p.axes, turned_width));
    }
}

TEST_CASE("maps of 8 and 16 bits are read from PGM and npy, and without a geometry are rendered as stored") {
  auto numbers = slow::labels::of_numbers(7, 5);
  const auto of8 = slow::pgm(numbers, 8), npy8 = slow::npy(numbers, 8);
  for (auto& n : numbers.samples) n = static_cast<std::uint16_t>(n * 1'000 + 9);
  const auto of16 = slow::pgm(numbers, 16), npy16 = slow::npy(numbers, 16);
  for (const auto& file : {of8, npy8}) {
    const auto map = mr::labels(named(file));
    CHECK(map.shape() == std::array<std::size_t, 2>{5, 7});
    CHECK(map.stored().width == 7);
    CHECK(map.values()(4, 6) == 34);
    CHECK(map.values()(1, 0) == 7);
  }
  for (const auto& file : {of16, npy16}) CHECK(mr::labels<std::uint16_t>(named(file)).values()(4, 6) == 34'009);
  CHECK(mr::labels<std::uint16_t>(named(of8)).values()(4, 6) == 34);   // a PGM has as many bits as its numbers need
  CHECK(mr::labels(named("P5 1#\n# w\n1\t255 x")).values()(0, 0) == 'x');
}

TEST_CASE("samples without a class become the number to ignore") {
  const auto file = slow::pgm(slow::labels::of_numbers(6, 1), 8);
  const auto values = mr::labels(named(file), {.classes = 4, .ignore = 77}).values();
  CHECK(std::vector<std::uint8_t>(values.span().begin(), values.span().end()) ==
        std::vector<std::uint8_t>{0, 1, 2, 3, 77, 77});
  CHECK(mr::labels(named(file), {.ignore = 77}).values()(0, 5) == 5);
  CHECK_THROWS_WITH_AS(static_cast<void>(mr::labels(named(file), {.classes = 4, .ignore = 256})),
                       doctest::Contains("label_options::ignore is out of range: got 256, expected at most 255"),
                       mr::setup_error);
  CHECK(mr::labels<std::uint16_t>(named(file), {.classes = 4, .ignore = 65'535}).values()(0, 4) == 65'535);
}

TEST_CASE("fields that are not a label map are refused, and damaged ones") {
  const auto map = slow::labels::of_numbers(3, 2);
  const auto of8 = slow::pgm(map, 8), of16 = slow::pgm(map, 16);
  CHECK(opened("RIFF....WEBP", "seg") ==
        "the field 'seg' is a WebP, expected a label map: a PNG, a binary PGM or a .npy array. Write the class indices "
        "as a PNG, as a binary PGM (P5), or with numpy.save()");
  CHECK(opened("P2 1 1 1 0").find("is an ASCII PGM, expected a ") != std::string::npos);
  CHECK(opened("").find("is not in a known format, expected a label map") != std::string::npos);
  CHECK(opened(of16).find("is a label map of the wrong element type: got 16 bits, expected 8 bits. "
                          "Use label_map<std::uint16_t>") !=
        std::string::npos);
  for (const char* header : {"P5", "P5 3", "P5 3 2", "P5 3 2 255", "P5 0 2 255 ", "P5 3 0 255 ", "P5 3 2 0 ",
                             "P5 3 2 65536 ", "P5 3 2 -1 ", "P5 x 2 255 ", "P5 3 2 255x", "P5 1234567 1 255 ", "P5 #",
                             "P53 2 255 ", "P5 3 2 255#x\n"})
    CHECK(opened(header).find("is a PGM with a damaged header") != std::string::npos);
  CHECK(opened(of8.substr(0, of8.size() - 1)).find("got 5 bytes of pixel data for 3 x 2 pixels, expected 6") !=
        std::string::npos);
  CHECK(opened(of8 + "x").find("got 7 bytes of pixel data") != std::string::npos);
  CHECK(opened(of8 + of8).find("if it contains several images") != std::string::npos);
  CHECK(opened("P5 70000 1 255 " + std::string(70'000, 'x')).find("is a PGM with a damaged header") !=
        std::string::npos);
  CHECK(opened(slow::npy("|u1", "(1, 70000)", std::string(70'000, 'x')), "npy").find(
            "70000 x 1 pixels, expected at most 65535") != std::string::npos);
  CHECK(opened(slow::npy("<i8", "(1, 1)", "12345678"), "npy").find("got '<i8', expected '|u1'") != std::string::npos);
  CHECK(opened(slow::npy("|u1", "(3,)", "abc"), "npy").find("got an array of 1 dimensions and 3 elements, expected "
                                                           "[height, width]") != std::string::npos);
  CHECK(opened(slow::npy("|u1", "(0, 3)", ""), "npy").find("2 dimensions and 0 elements") != std::string::npos);
}

TEST_CASE("a map of another size than its image is refused, with shard and key, and with the remedy") {
  const auto file = slow::with_orientation(mr::encode_jpeg(mr::image({30, 40, 3})), 6);
  const auto p = mr::jpeg(slow::view(file)), turned = mr::jpeg(slow::view(file), {.apply_orientation = true});
  const auto as_stored = slow::pgm(slow::labels::of_numbers(40, 30), 16);
  const auto as_shown = slow::pgm(slow::labels::of_numbers(30, 40), 16);
  const auto other = slow::pgm(slow::labels::of_numbers(40, 31), 16);
  const auto applied = [](const std::string& map, const mr::geometry& g) {
    return message_of([&] { static_cast<void>(mr::labels<std::uint16_t>(named(map)).apply(g)); });
  };
  CHECK(applied(as_stored, p.geometry()) == "no error");
  CHECK(applied(as_stored, turned.crop({.width = 5, .height = 5}).resize(9, 9).geometry()) == "no error");
  CHECK(applied(as_shown, turned.geometry().upright()) == "no error");
  CHECK(applied(other, p.geometry()) == "the field 'pgm' is a label map of the wrong size: got 40 x 31 pixels, "
                                        "expected 40 x 30 pixels, the stored size of its image. Write each map in the "
                                        "size of its image");
  CHECK(applied(as_shown, turned.geometry()) ==
        "the field 'pgm' is a label map of the wrong size: got 30 x 40 pixels, expected 40 x 30 pixels, the stored "
        "size of its image before its EXIF orientation 6. Use apply(p.geometry().upright()) if the map was drawn on "
        "the rotated image");
  CHECK(applied(as_shown, p.geometry()).find("use jpeg(..., {.apply_orientation = true}) and apply(") !=
        std::string::npos);
  CHECK(applied(as_stored, turned.geometry().upright()) != "no error");

  mr::block_pool pool;
  mr::record_builder build(pool);
  build.begin("train-7.tar", "0042", 512);
  const auto data = std::as_bytes(std::span(other));
  std::copy(data.begin(), data.end(), build.add_field("mask.pgm", data.size()).begin());
  const mr::record r = build.finish();
  try {
    static_cast<void>(mr::labels<std::uint16_t>(r["mask.pgm"]).apply(p.geometry()));
    FAIL("no error");
  } catch (const mr::data_error& e) {
    CHECK(e.where().shard == "train-7.tar");
    CHECK(e.where().key == "0042");
    CHECK(e.where().stage == "labels");
    CHECK(e.message().find("the field 'mask.pgm'") == 0);
  }
}

TEST_CASE("a row of another size is refused, and a map renders the shape that it reports") {
  const auto file = slow::pgm(slow::labels::of_numbers(6, 4), 8);
  const auto map = mr::labels(named(file));
  mr::scratch s;
  std::vector<std::uint8_t> row(25);
  CHECK_THROWS_WITH_AS(map.render(row, s), doctest::Contains("of shape [4, 6] has the wrong size: got 25 elements"),
                       mr::setup_error);
  map.render(std::span(row).first(24), s);
  CHECK(row[23] == 23);
}

namespace {

/// Four images, and maps whose labels are different numbers.
struct mosaic_sources {
  std::array<std::vector<std::byte>, 4> files{};
  std::array<std::string, 4> maps{};

  template <class Size>
  explicit mosaic_sources(const Size& size_of) {
    for (std::size_t i = 0; i < 4; ++i) {
      const auto [width, height] = size_of(i);
      files[i] = mr::encode_jpeg(mr::image({height, width, 3}));
      auto numbers = slow::labels::of_numbers(width, height);
      for (auto& n : numbers.samples) n = static_cast<std::uint16_t>(n + 10'000 * i);
      maps[i] = slow::npy(numbers, 16);
    }
  }
  mr::label_map<std::uint16_t> map(std::size_t i) const {
    return mr::labels<std::uint16_t>(mr::bytes::borrowed(maps[i], "npy"),
                                     {.ignore = static_cast<std::uint32_t>(60'000 + i)});
  }
  mr::mosaic_labels<std::uint16_t> labels(const mr::mosaic_picture& mosaic) const {
    return {mosaic, {map(0), map(1), map(2), map(3)}};
  }
};

}  // namespace

TEST_CASE("the labels of a mosaic are those of each map in its quarter, with a corner at the center") {
  mr::rng d({.seed = 82});
  mr::scratch s;
  for (int round = 0; round < 80; ++round) {
    const mosaic_sources of([&](std::size_t) { return std::array{d.below(70) + 1, d.below(70) + 1}; });
    const auto image = [&](std::size_t i) {
      mr::picture p = mr::jpeg(slow::view(of.files[i]));
      if ((static_cast<std::size_t>(round) + i) % 2 == 0) p = p.flip();
      return i % 3 == 1 ? p.resize(41, 23) : p;
    };
    mr::rng same({.seed = d.bits()});
    const mr::mosaic_picture mosaic({image(0), image(1), image(2), image(3)},
                                    {.size = {.width = d.below(90) + 2, .height = d.below(90) + 2},
                                     .min_center = d.uniform(0, 0.5)}, same);
    const auto labels = of.labels(mosaic);
    const auto [height, width] = labels.shape();
    const std::size_t cy = mosaic.parts()[0].height(), cx = mosaic.parts()[0].width();
    std::vector<std::uint16_t> row(height * width), expected;
    labels.render(row, s);
    std::array<mr::tensor<std::uint16_t, 2>, 4> full;   // of the images alone
    for (std::size_t i = 0; i < 4; ++i) full[i] = of.map(i).apply(image(i).geometry()).values();
    for (std::size_t y = 0; y < height; ++y)
      for (std::size_t x = 0; x < width; ++x) {
        const std::size_t i = (y >= cy ? 2 : 0) + (x >= cx ? 1 : 0);
        const std::size_t own_y = y >= cy ? y - cy : y + full[i].shape()[0] - cy;   // wraps around outside
        const std::size_t own_x = x >= cx ? x - cx : x + full[i].shape()[1] - cx;
        expected.push_back(own_y < full[i].shape()[0] && own_x < full[i].shape()[1]
                               ? full[i](own_y, own_x)
                               : static_cast<std::uint16_t>(60'000 + i));
      }
    REQUIRE(row == expected);
    REQUIRE(std::equal(row.begin(), row.end(), labels.values().span().begin()));
    CHECK_THROWS_AS(labels.render(std::span(row).first(row.size() - 1), s), mr::setup_error);
  }
}

TEST_CASE("frozen: the labels of a mosaic equal those of NumPy (mosaic_oracle.py)") {
  const mosaic_sources of([](std::size_t i) { return std::array{20 + 11 * i, 15 + 13 * i}; });
  const auto image = [&](std::size_t i) {
    const mr::picture p = mr::jpeg(slow::view(of.files[i]));
    return i == 1 ? p.flip() : i == 2 ? p.resize(17, 29) : p;
  };
  mr::rng random({.seed = 1});
  const mr::mosaic_picture mosaic({image(0), image(1), image(2), image(3)},
                                  {.size = {.width = 64, .height = 48}, .min_center = 0.5}, random);
  const auto labels = of.labels(mosaic).values();
  CHECK(mr::detail::crc32(std::as_bytes(labels.span())) == 695614581U);
  const mosaic_sources other([](std::size_t) { return std::array<std::size_t, 2>{9, 9}; });
  CHECK_THROWS_AS(other.labels(mosaic), mr::data_error);
}
