#include <millrace/image/any_picture.hpp>
#include <millrace/image/augment/photometric_plan.hpp>
#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/image/labels/label_map.hpp>
#include <millrace/image/labels/u16_picture.hpp>
#include <millrace/image/png/png.hpp>
#include <millrace/image/png/png_encoder.hpp>
#include <millrace/item/record_builder.hpp>

#include "../planned_pictures.hpp"
#include "../slow_geometry.hpp"
#include "../slow_pictures.hpp"
#include "plain_libpng.hpp"
#include "png_files.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

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
        "labels: the field 'seg.png' is a label map of the wrong element type: got 16 bits, expected 8 bits");
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

namespace {

std::vector<std::byte> draw_rgb16(mr::rng& d, std::size_t width, std::size_t height) {
  return slow::make_png(slow::random_samples({.width = width, .height = height, .color = d.chance(0.3) ? 6U : 2U,
                                              .depth = 16, .interlaced = d.chance(0.3)}, d.bits()),
                        {.seed = d.bits()});
}

/// The samples of a file by libpng.
struct stored_samples {
  plain_libpng reference;
  std::size_t channels;

  explicit stored_samples(std::span<const std::byte> file)
      : reference(file, plain_libpng::as::samples), channels(reference.row_bytes / reference.width / 2) {
    REQUIRE(reference.error == "");
  }
  std::uint16_t at(std::size_t y, std::size_t x, std::size_t c) const {
    std::uint16_t sample = 0;
    std::memcpy(&sample, reference.row(y) + 2 * (channels * x + c), sizeof sample);
    return sample;
  }
};

/// Whether an image has the samples that fractions select.
bool holds_samples(const mr::u16_picture& p, const slow::picture_axes& axes, const stored_samples& stored) {
  const auto got = p.values();
  if (got.shape()[0] != static_cast<std::size_t>(axes.down.count) ||
      got.shape()[1] != static_cast<std::size_t>(axes.across.count))
    return false;
  for (std::size_t y = 0; y < got.shape()[0]; ++y)
    for (std::size_t x = 0; x < got.shape()[1]; ++x) {
      const bool is_image = axes.shows(y, x);
      const auto [row, column] = is_image ? axes.nearest(y, x) : std::pair<std::size_t, std::size_t>();
      for (std::size_t c = 0; c < 3; ++c)
        if (got(y, x, c) != (is_image ? stored.at(row, column, c) : 0)) return false;
    }
  return true;
}

template <class Error, class Act>
std::string message_of(const Act& act) {
  try {
    act();
  } catch (const Error& e) {
    return e.message() + ". " + e.hint();
  }
  return "no error";
}

}  // namespace

TEST_CASE("16-bit RGB, rendered by any chain of steps in any orientation, has the samples of libpng") {
  mr::rng d({.seed = 61});
  for (int i = 0; i < 200; ++i) {
    const std::size_t width = d.below(i % 9 == 0 ? 3 : 70) + 1, height = d.below(i % 9 == 1 ? 3 : 70) + 1;
    const auto file = draw_rgb16(d, width, height);
    const stored_samples stored(file);
    slow::chained_picture p(mr::png(slow::view(file)), 1);
    if (i % 3 != 0) p.take_random_steps(d, 6, 100, i % 2 == 1);
    CAPTURE(width);
    CAPTURE(height);
    INFO(p.steps);
    const mr::u16_picture own = p.picture.u16();
    CHECK(own.geometry().width() == p.picture.width());
    REQUIRE(holds_samples(own, p.axes, stored));
    const int orientation = static_cast<int>(d.between(1, 8));   // the same samples with the geometry of another image
    const auto photo = slow::with_orientation(mr::encode_jpeg(mr::image({height, width, 3})), orientation);
    slow::chained_picture other(mr::jpeg(slow::view(photo), {.apply_orientation = true}), orientation);
    other.take_random_steps(d, 6, 100, i % 2 == 0);
    INFO(other.steps);
    REQUIRE(holds_samples(mr::png(slow::view(file)).u16().apply(other.picture.geometry()), other.axes, stored));
  }
}

TEST_CASE("16-bit RGB of fixed files has frozen digests") {
  const auto digest_of = [](const mr::u16_picture& p) {
    std::uint32_t sum = 0;
    const auto samples = p.values();
    for (const std::uint16_t v : samples.span()) sum = sum * 16'777'619U ^ v;   // independent of the byte order
    return sum;
  };
  const auto file = slow::make_png(slow::random_samples({.width = 61, .height = 47, .depth = 16}, 3));
  const mr::picture p = mr::png(slow::view(file));
  CHECK(digest_of(p.u16()) == 1'309'789'174);
  const mr::picture part = p.crop({.left = 7, .top = 9, .width = 40, .height = 30}).resize(25, 33).flip();
  CHECK(digest_of(part.u16()) == 3'417'592'397);
}

TEST_CASE("normalized 16-bit samples equal a loop") {
  mr::rng d({.seed = 62});
  mr::scratch s;
  const auto file = draw_rgb16(d, 33, 21);
  const mr::u16_picture p = mr::png(slow::view(file)).resize(17, 40).flip().u16();
  const auto samples = p.values();
  const auto check = [&]<class T>(T, const mr::sample_normalization& by) {
    const mr::normalized_u16_picture<T> plan(p, by);
    CHECK(plan.shape() == std::array<std::size_t, 3>{3, 17, 40});
    std::vector<T> row(3 * 17 * 40);
    plan.render(row, s);
    std::size_t wrong = 0;
    for (std::size_t c = 0; c < 3; ++c)
      for (std::size_t i = 0; i < 17 * 40; ++i) {
        const auto scale = static_cast<float>(1 / by.std[c]), bias = static_cast<float>(-by.mean[c] / by.std[c]);
        const float value = std::fma(static_cast<float>(samples.span()[3 * i + c]), scale, bias);
        const T expected = mr::detail::half_element<T>(value);
        if (std::memcmp(&expected, &row[c * 17 * 40 + i], sizeof(T)) != 0) ++wrong;
      }
    CHECK(wrong == 0);
  };
  const mr::sample_normalization kitti{.mean = {32'768, 32'768, 0}, .std = {64, 64, 1}};
  check(0.0F, kitti);
  check(mr::f16{}, {.mean = {32'768, 30'000, 77}, .std = {300, 1'000.5, 4'000}});
  check(mr::bf16{}, {.mean = {32'768, 30'000, 77}, .std = {300, 1'000.5, 4'000}});
  // The devkit of KITTI computes (sample - 32768) / 64, which f32 represents exactly.
  std::vector<float> flow(3 * 17 * 40);
  mr::normalized_u16_picture<float>(p, kitti).render(flow, s);
  for (std::size_t i = 0; i < 17 * 40; ++i) {
    REQUIRE(flow[i] == (static_cast<float>(samples.span()[3 * i]) - 32'768.0F) / 64.0F);
    REQUIRE(flow[2 * 17 * 40 + i] == static_cast<float>(samples.span()[3 * i + 2]));
  }
  CHECK_THROWS_WITH_AS(mr::normalized_u16_picture<float>(p, {.std = {1, 0, 1}}),
                       doctest::Contains("got mean 0.000000 and std 0.000000 in channel 1"), mr::setup_error);
}

TEST_CASE("u16() names the files, plans and rows that it refuses") {
  const auto of_kind = [](unsigned color, unsigned depth) {
    return slow::make_png(slow::random_samples({.width = 5, .height = 4, .color = color, .depth = depth}, 1));
  };
  const auto refused = [](const std::vector<std::byte>& file) {
    return message_of<mr::data_error>([&] { static_cast<void>(mr::png(slow::view(file)).u16()); });
  };
  CHECK(refused(of_kind(0, 16)) == "the PNG is not 16-bit RGB: got 1 channels of 16 bits, expected 3 or 4 channels of "
                                   "16 bits. Use mr::labels<std::uint16_t>() for gray or palette PNGs");
  CHECK(refused(of_kind(2, 8)).ends_with("Leave out u16() for 8-bit images"));
  CHECK(refused(of_kind(4, 16)).ends_with("Write the values as a 16-bit RGB PNG"));
  const auto jpeg = mr::encode_jpeg(mr::image({4, 4, 3}));
  CHECK(message_of<mr::data_error>([&] { static_cast<void>(mr::jpeg(slow::view(jpeg)).u16()); })
            .find("got the format jpeg, expected a PNG of 16-bit RGB") != std::string::npos);
  const auto file = of_kind(2, 16);
  const mr::picture p = mr::png(slow::view(file));
  CHECK(message_of<mr::setup_error>([&] { static_cast<void>(p.apply(mr::photometric_plan().invert()).u16()); })
            .find("cannot have operations on its pixels") != std::string::npos);
  CHECK(message_of<mr::setup_error>([&] {
          static_cast<void>(mr::png(slow::view(file), {.background = mr::rgb_color{1, 2, 3}}).u16());
        }).find("cannot have a background") != std::string::npos);
  const auto larger = mr::encode_jpeg(mr::image({4, 6, 3}));
  CHECK(message_of<mr::data_error>([&] { static_cast<void>(p.u16().apply(mr::jpeg(slow::view(larger)).geometry())); })
            .find("got 5 x 4 pixels, expected 6 x 4") != std::string::npos);
  mr::scratch s;
  std::vector<std::uint16_t> row(59);
  CHECK(message_of<mr::setup_error>([&] { p.u16().render(row, s); }).find("got 59 elements") != std::string::npos);
  std::vector<std::byte> cut(file.begin(), file.end() - 40);
  CHECK_THROWS_AS(static_cast<void>(mr::png(slow::view(cut)).u16().values()), mr::data_error);
  CHECK(message_of<mr::data_error>([&] { static_cast<void>(mr::labels<std::uint16_t>(slow::view(file))); })
            .ends_with("Use mr::png(field).u16() for 16-bit RGB values, such as optical flow"));
}
