#include <millrace/adapt/webp.hpp>
#include <millrace/image/picture/rgba_picture.hpp>
#include <millrace/image/pnm/pnm.hpp>
#include <millrace/measure/values/event_names.hpp>

#include "../image/planned_pictures.hpp"
#include "../image/slow_pictures.hpp"

#include <doctest/doctest.h>

#include <webp/encode.h>

#include <cstring>
#include <string>
#include <vector>

namespace mr = millrace;

namespace {

std::vector<std::byte> file_of(std::uint8_t* webp, std::size_t size) {
  REQUIRE(size > 0);
  const auto* const bytes = reinterpret_cast<const std::byte*>(webp);
  std::vector<std::byte> file(bytes, bytes + size);
  WebPFree(webp);
  return file;
}

/// A WebP of these pixels: lossy or not, with alpha or not.
std::vector<std::byte> encoded(const mr::image& pixels, bool lossless, bool alpha, float quality) {
  const auto [height, width, channels] = pixels.shape();
  const auto w = static_cast<int>(width), h = static_cast<int>(height);
  std::uint8_t* webp = nullptr;
  if (!alpha) {
    const std::size_t size = lossless ? WebPEncodeLosslessRGB(pixels.data(), w, h, 3 * w, &webp)
                                      : WebPEncodeRGB(pixels.data(), w, h, 3 * w, quality, &webp);
    return file_of(webp, size);
  }
  std::vector<std::uint8_t> rgba(4 * width * height);
  for (std::size_t i = 0; i < width * height; ++i) {
    std::memcpy(&rgba[4 * i], pixels.data() + 3 * i, 3);
    rgba[4 * i + 3] = static_cast<std::uint8_t>(17 * i);
  }
  const std::size_t size = lossless ? WebPEncodeLosslessRGBA(rgba.data(), w, h, 4 * w, &webp)
                                    : WebPEncodeRGBA(rgba.data(), w, h, 4 * w, quality, &webp);
  return file_of(webp, size);
}

/// A PPM of the pixels that libwebp decodes without a crop.
std::vector<std::byte> decoded_completely(const std::vector<std::byte>& file) {
  int width = 0, height = 0;
  std::uint8_t* const pixels =
      WebPDecodeRGB(reinterpret_cast<const std::uint8_t*>(file.data()), file.size(), &width, &height);
  REQUIRE(pixels);
  const std::string header = "P6 " + std::to_string(width) + " " + std::to_string(height) + " 255\n";
  const auto text = std::as_bytes(std::span(header)), values = std::as_bytes(
      std::span(pixels, 3 * static_cast<std::size_t>(width) * static_cast<std::size_t>(height)));
  std::vector<std::byte> ppm(text.begin(), text.end());
  ppm.insert(ppm.end(), values.begin(), values.end());
  WebPFree(pixels);
  return ppm;
}

void append_chunk(std::vector<std::byte>& file, std::string_view name, std::span<const std::byte> payload) {
  for (const char c : name) file.push_back(static_cast<std::byte>(c));
  for (unsigned shift = 0; shift < 32; shift += 8)
    file.push_back(static_cast<std::byte>(payload.size() >> shift & 0xff));
  file.insert(file.end(), payload.begin(), payload.end());
  if (payload.size() % 2 != 0) file.push_back({});
}

/// The same image in a file with an extended header, followed by EXIF data.
std::vector<std::byte> extended(const std::vector<std::byte>& simple, unsigned flags, std::size_t width,
                                std::size_t height, std::span<const std::byte> exif) {
  std::vector<std::byte> file(simple.begin(), simple.begin() + 12), head(10);
  head[0] = static_cast<std::byte>(flags);
  for (std::size_t i = 0; i < 3; ++i) {
    head[4 + i] = static_cast<std::byte>((width - 1) >> (8 * i) & 0xff);
    head[7 + i] = static_cast<std::byte>((height - 1) >> (8 * i) & 0xff);
  }
  append_chunk(file, "VP8X", head);
  file.insert(file.end(), simple.begin() + 12, simple.end());
  if (!exif.empty()) append_chunk(file, "EXIF", exif);
  const std::size_t size = file.size() - 8;
  for (std::size_t i = 0; i < 4; ++i) file[4 + i] = static_cast<std::byte>(size >> (8 * i) & 0xff);
  return file;
}

std::vector<std::byte> exif_of(int orientation, bool marked) {
  std::vector<std::byte> file;
  const auto add = [&file](std::initializer_list<int> values) {
    for (const int v : values) file.push_back(static_cast<std::byte>(v));
  };
  if (marked) add({'E', 'x', 'i', 'f', 0, 0});
  add({'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0, 0, 0, 0, 0});
  return file;
}

std::string problem_of(const std::vector<std::byte>& file) {
  try {
    static_cast<void>(mr::webp(slow::view(file)).pixels());
  } catch (const mr::data_error& e) {
    CHECK(e.where().stage == "webp");
    return e.message();
  }
  return "none";
}

}  // namespace

TEST_CASE("any plan of a WebP has the bits of the same plan of the complete image") {
  mr::rng d({.seed = 3});
  mr::scratch s;
  for (int round = 0; round < 150; ++round) {
    const mr::image photo = slow::photo(d.below(90) + 1, d.below(90) + 1, 3, d.bits());
    const bool lossless = d.chance(0.4), alpha = d.chance(0.4);
    const auto file = encoded(photo, lossless, alpha, static_cast<float>(d.below(101)));
    const auto ppm = decoded_completely(file);
    const mr::rng plan({.seed = 5, .sample = d.bits()});
    const mr::image got = slow::planned(mr::webp(slow::view(file)), plan).pixels(s);
    const mr::image expected = slow::planned(mr::pnm(slow::view(ppm)), plan).pixels(s);
    REQUIRE(got.shape() == expected.shape());
    REQUIRE(std::memcmp(got.data(), expected.data(), got.size()) == 0);
    const mr::picture p = mr::any_picture(slow::view(file), {.also = &mr::webp_pictures});
    CHECK(std::memcmp(p.pixels(s).data(), mr::pnm(slow::view(ppm)).pixels(s).data(), photo.size()) == 0);
  }
}

TEST_CASE("a WebP is decoded at its full size even where a JPEG would not be") {
  const auto file = encoded(slow::photo(80, 120, 3, 4), true, false, 0);
  const mr::any_picture_options fast{.jpeg = {.quality = mr::picture_quality::fast}, .also = &mr::webp_pictures};
  const mr::image got = mr::any_picture(slow::view(file), fast).resize(9, 11).pixels();
  const mr::image expected = mr::webp(slow::view(file)).resize(9, 11).pixels();
  CHECK(std::equal(got.span().begin(), got.span().end(), expected.span().begin(), expected.span().end()));
}

TEST_CASE("the EXIF orientation of a WebP is applied on request") {
  const mr::image photo = slow::photo(12, 20, 3, 1);
  const auto simple = encoded(photo, true, false, 0);
  for (int orientation = 1; orientation <= 8; ++orientation)
    for (const bool marked : {false, true}) {
      const auto file = extended(simple, 8, 20, 12, exif_of(orientation, marked));
      CHECK(mr::webp(slow::view(file)).width() == 20);
      const mr::picture oriented = mr::webp(slow::view(file), {.apply_orientation = true});
      CHECK(oriented.header().orientation == orientation);
      mr::image expected = photo;
      const auto upside = [](const mr::image& from) { return slow::transpose(slow::flip(slow::transpose(from))); };
      if (orientation == 2) expected = slow::flip(photo);
      if (orientation == 3) expected = upside(slow::flip(photo));
      if (orientation == 4) expected = upside(photo);
      if (orientation == 5) expected = slow::transpose(photo);
      if (orientation == 6) expected = slow::flip(slow::transpose(photo));
      if (orientation == 7) expected = slow::flip(upside(slow::transpose(photo)));
      if (orientation == 8) expected = upside(slow::transpose(photo));
      const mr::image got = oriented.pixels();
      REQUIRE(got.shape() == expected.shape());
      CHECK(std::memcmp(got.data(), expected.data(), got.size()) == 0);
    }
}

TEST_CASE("a WebP that is cut, damaged or animated, and other files, are errors that name the defect") {
  const mr::image photo = slow::photo(30, 40, 3, 2);
  for (const bool lossless : {false, true}) {
    const auto file = encoded(photo, lossless, false, 80);
    CHECK(problem_of(file) == "none");
    for (std::size_t size = 0; size + 1 < file.size(); size += size < 64 ? 1 : 37) {
      const std::vector<std::byte> cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
      REQUIRE(problem_of(cut) != "none");
    }
    const std::vector<std::byte> half(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(file.size() / 2));
    CHECK(problem_of(half).find("truncated") != std::string::npos);
  }
  const auto simple = encoded(photo, true, false, 0);
  CHECK(problem_of(extended(simple, 2, 40, 30, {})).find("animation") != std::string::npos);
  CHECK(problem_of({}).find("a WebP begins with RIFF") != std::string::npos);
  CHECK(problem_of(std::vector<std::byte>(100)).find("a WebP begins with RIFF") != std::string::npos);
  CHECK_THROWS_AS(static_cast<void>(mr::webp(slow::view(simple), {.limits = {.max_pixels = 1199}})), mr::data_error);
  CHECK_THROWS_AS(static_cast<void>(mr::any_picture(slow::view(simple))), mr::data_error);
  mr::rng d({.seed = 6});
  for (int round = 0; round < 300; ++round) {
    auto file = encoded(photo, round % 2 == 0, round % 3 == 0, 70);
    for (std::uint64_t n = d.below(4) + 1; n > 0; --n)
      file[d.below(file.size())] = static_cast<std::byte>(d.below(256));
    static_cast<void>(problem_of(file));   // either pixels or a data_error of stage webp; never a crash
  }
}

TEST_CASE("the alpha of a WebP is kept or composited on request") {
  mr::rng d({.seed = 8});
  mr::scratch s;
  for (int round = 0; round < 20; ++round) {
    const mr::image photo = slow::photo(d.below(40) + 1, d.below(40) + 1, 3, d.bits());
    const auto file = encoded(photo, round % 2 == 0, true, 80);
    int width = 0, height = 0;
    std::uint8_t* const expected =
        WebPDecodeRGBA(reinterpret_cast<const std::uint8_t*>(file.data()), file.size(), &width, &height);
    REQUIRE(expected);
    const mr::image actual = mr::rgba_picture(mr::webp(slow::view(file))).pixels(s);
    const mr::rgb_color background{200, 10, 90};
    const mr::picture over = mr::webp(slow::view(file), {.background = background});
    const mr::image composited = over.pixels(s), opaque = mr::rgba_picture(over).pixels(s);
    for (std::size_t i = 0; i < photo.span().size() / 3; ++i) {
      const std::uint8_t* const p = expected + 4 * i;
      REQUIRE(std::memcmp(&actual.span()[4 * i], p, 4) == 0);
      for (std::size_t c = 0; c < 3; ++c) {
        const unsigned v = p[c] * p[3] + background[c] * (255U - p[3]);
        REQUIRE(composited.span()[3 * i + c] == (2 * v + 255) / 510);
        REQUIRE(opaque.span()[4 * i + c] == composited.span()[3 * i + c]);
      }
      REQUIRE(opaque.span()[4 * i + 3] == 255);
    }
    WebPFree(expected);
  }
}

TEST_CASE("crops of one WebP are decoded once, with the bits of each alone") {
  mr::rng d({.seed = 9});
  mr::scratch s;
  for (int round = 0; round < 20; ++round) {
    const auto file = encoded(slow::photo(d.below(90) + 20, d.below(90) + 20, 3, d.bits()), round % 2 == 0, false, 70);
    mr::event_counts counts;
    s.count_into(counts);
    std::vector<mr::picture> views;
    std::vector<std::vector<std::uint8_t>> together;
    for (int k = 0; k < 5; ++k)
      views.push_back(slow::planned(mr::webp(slow::view(file)), mr::rng({.seed = 6, .sample = d.bits()})));
    for (const auto& p : views) together.emplace_back(3 * p.height() * p.width());
    mr::picture::group group;
    for (std::size_t k = 0; k < views.size(); ++k) views[k].join(group, together[k]);
    group.render(s);
    for (std::size_t k = 0; k < views.size(); ++k) {
      const mr::image alone = views[k].pixels(s);
      REQUIRE(std::equal(alone.span().begin(), alone.span().end(), together[k].begin(), together[k].end()));
    }
    bool shared = false;
    for (const auto& c : counts.counts())
      shared = shared || (mr::detail::event_of_text(c.what) == mr::detail::event_name::shared && c.times == 4);
    CHECK(shared);
  }
}
