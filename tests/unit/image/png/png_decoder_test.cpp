#include <millrace/base/error.hpp>
#include <millrace/image/png/png_decoder.hpp>

#include "../../../thorough.hpp"
#include "../slow_pictures.hpp"
#include "plain_libpng.hpp"
#include "png_files.hpp"

#include <cstring>

#include <doctest/doctest.h>

namespace mr = millrace;
using mr::detail::png_layout;
using mr::detail::png_region;
using slow::plain_libpng;

namespace {

struct outcome {
  std::string error{};
  std::size_t row_bytes = 0;
  std::vector<std::uint8_t> pixels{};
  std::size_t rows = 0;
};

outcome decode(std::span<const std::byte> file, const mr::detail::png_pixel_options& options,
               std::optional<png_region> region = {}, const mr::detail::png_limits& limits = {}) {
  static mr::detail::png_decoder d;
  outcome result;
  try {
    const auto& h = d.open(file, limits);
    if (!region) region = png_region{.right = h.width, .bottom = h.height};
    d.decode(*region, options, [&](std::size_t y, std::span<const std::uint8_t> row) {
      REQUIRE(y == region->top + result.rows);
      result.row_bytes = row.size();
      result.pixels.insert(result.pixels.end(), row.begin(), row.end());
      ++result.rows;
    });
  } catch (const mr::data_error& e) {
    CHECK(e.where().stage == "png");
    result.error = e.message();
  }
  return result;
}

/// The region of libpng's RGBA in one of our layouts; if alpha is composited, by the formula of the format.
std::vector<std::uint8_t> expected_pixels(const plain_libpng& reference, const png_region& r,
                                          const mr::detail::png_pixel_options& o) {
  std::vector<std::uint8_t> pixels;
  for (std::size_t y = r.top; y < r.bottom; ++y)
    for (std::size_t x = r.left; x < r.right; ++x) {
      const std::uint8_t* const p = reference.row(y) + 4 * x;
      for (std::size_t c = 0; c < 3; ++c) {
        const unsigned v = p[c] * p[3] + o.background[c] * (255U - p[3]) + 128;
        pixels.push_back(o.composite ? static_cast<std::uint8_t>((v + (v >> 8)) >> 8) : p[c]);
      }
      if (o.layout == png_layout::rgba) pixels.push_back(o.composite ? 255 : p[3]);
    }
  return pixels;
}

std::vector<std::uint8_t> without_fourth(const std::vector<std::uint8_t>& rgbx) {
  std::vector<std::uint8_t> rgb;
  for (std::size_t i = 0; i < rgbx.size(); ++i)
    if (i % 4 != 3) rgb.push_back(rgbx[i]);
  return rgb;
}

void expect_all_layouts(std::span<const std::byte> file, const png_region& region) {
  const plain_libpng rgba(file, plain_libpng::as::rgba);
  REQUIRE(rgba.error == "");
  for (const auto& o : {mr::detail::png_pixel_options{.layout = png_layout::rgb},
                        mr::detail::png_pixel_options{.layout = png_layout::rgba},
                        mr::detail::png_pixel_options{.layout = png_layout::rgb, .composite = true,
                                                      .background = {10, 200, 255}},
                        mr::detail::png_pixel_options{.layout = png_layout::rgba, .composite = true}}) {
    const outcome got = decode(file, o, region);
    REQUIRE(got.error == "");
    REQUIRE(got.pixels == expected_pixels(rgba, region, o));
    if (o.layout != png_layout::rgb) continue;
    auto four = o;
    four.layout = png_layout::rgbx;
    REQUIRE(without_fourth(decode(file, four, region).pixels) == got.pixels);
  }
}

void expect_samples(std::span<const std::byte> file, const slow::png_samples& s, const png_region& region) {
  const outcome got = decode(file, {.layout = png_layout::samples}, region);
  REQUIRE(got.error == "");
  std::vector<std::uint8_t> expected;
  for (std::size_t y = region.top; y < region.bottom; ++y)
    for (std::size_t x = region.left; x < region.right; ++x)
      for (std::size_t c = 0; c < s.kind.channels(); ++c) {
        const auto wide = static_cast<std::uint16_t>(s.at(y, x, c));
        if (s.kind.depth < 16) expected.push_back(static_cast<std::uint8_t>(wide));
        else expected.insert(expected.end(), reinterpret_cast<const std::uint8_t*>(&wide),
                             reinterpret_cast<const std::uint8_t*>(&wide) + 2);
      }
  REQUIRE(got.pixels == expected);
}

png_region any_region(mr::rng& d, std::size_t width, std::size_t height) {
  if (d.chance(0.3)) return {.right = width, .bottom = height};
  const std::size_t left = d.below(width), top = d.below(height);
  return {.left = left, .top = top, .right = left + 1 + d.below(width - left),
          .bottom = top + 1 + d.below(height - top)};
}

/// Transparency that fits the kind; empty if it is not allowed.
std::string transparency(mr::rng& d, const slow::png_samples& s, std::size_t colors) {
  std::string palette;
  if (s.kind.color == 3)
    for (std::uint64_t n = d.below(colors) + 1; n > 0; --n) palette += static_cast<char>(d.below(256));
  if (s.kind.color == 0 || s.kind.color == 2)
    for (std::size_t c = 0; c < s.kind.channels(); ++c) {
      const unsigned v = s.sample[c];
      palette += static_cast<char>(v >> 8);
      palette += static_cast<char>(v);
    }
  return palette;
}

}  // namespace

TEST_CASE("every color type, depth, filter and pass, at sizes of 1 x 1 to 9 x 9") {
  mr::rng d({.seed = 1});
  std::size_t files = 0;
  slow::for_each_png_kind([&](slow::png_kind kind) {
    for (kind.height = 1; kind.height <= 9; ++kind.height)
      for (kind.width = 1; kind.width <= 9; kind.width += stride(4)) {
        const auto samples = slow::random_samples(kind, d.bits());
        const slow::png_recipe how{.filter = d.chance(0.5) ? static_cast<int>(d.below(5)) : -1,
                                   .piece_bytes = d.chance(0.5) ? d.below(20) + 1 : 1 << 16, .seed = d.bits()};
        auto file = slow::make_png(samples, how);
        const std::size_t colors = std::min<std::size_t>(256, std::size_t{1} << kind.depth);
        if (const auto clear = transparency(d, samples, colors); !clear.empty() && d.chance(0.6))
          file = slow::with_chunk(file, "tRNS", clear, "IDAT");
        CAPTURE(kind.color);
        CAPTURE(kind.depth);
        CAPTURE(kind.interlaced);
        CAPTURE(kind.width);
        CAPTURE(kind.height);
        const png_region region = any_region(d, kind.width, kind.height);
        expect_all_layouts(file, {.right = kind.width, .bottom = kind.height});
        expect_all_layouts(file, region);
        expect_samples(file, samples, region);
        ++files;
      }
  });
  CHECK(files > 100);
}

TEST_CASE("larger images of every kind, in many pieces") {
  mr::rng d({.seed = 2});
  slow::for_each_png_kind([&](slow::png_kind kind) {
    for (int i = 0; i < 4; ++i) {
      kind.width = d.below(700) + 1;
      kind.height = d.below(120) + 1;
      const auto samples = slow::random_samples(kind, d.bits());
      const auto file = slow::make_png(samples, {.piece_bytes = d.below(9000) + 1,
                                                 .level = static_cast<int>(d.below(10)), .seed = d.bits()});
      CAPTURE(kind.color);
      CAPTURE(kind.depth);
      expect_all_layouts(file, any_region(d, kind.width, kind.height));
      expect_samples(file, samples, any_region(d, kind.width, kind.height));
    }
  });
}

TEST_CASE("rows that are longer than the window, with every filter") {
  mr::rng d({.seed = 3});
  for (int filter = -1; filter < 5; ++filter) {
    const auto samples = slow::random_samples({.width = 40'000, .height = 9, .color = 6}, d.bits());
    const auto file = slow::make_png(samples, {.filter = filter, .level = 1, .seed = d.bits()});
    expect_samples(file, samples, {.right = 40'000, .bottom = 9});
    expect_samples(file, samples, {.left = 39'990, .top = 7, .right = 40'000, .bottom = 8});
  }
}

TEST_CASE("narrow images that are longer than the window, of long matches") {
  // Each stop inside a match leaves up to 257 bytes after the limit, which is more than narrow rows have.
  mr::rng d({.seed = 6});
  for (const std::size_t width : {1U, 3U, 7U, 20U, 90U})
    for (const unsigned color : {0U, 3U, 6U}) {
      slow::png_samples samples = slow::random_samples({.width = width, .height = 400'000 / width, .color = color}, 1);
      const std::size_t period = d.below(300) + 1;
      for (std::size_t i = period; i < samples.sample.size(); ++i)
        if (!d.chance(0.0005)) samples.sample[i] = samples.sample[i - period];
      const auto file = slow::make_png(samples, {.filter = 0, .piece_bytes = d.below(9000) + 1});
      expect_samples(file, samples, {.right = width, .bottom = 400'000 / width});
    }
}

TEST_CASE("photographs have the pixels of libpng") {
  for (std::uint64_t seed = 1; seed <= 6; ++seed)
    for (const std::size_t channels : {1U, 3U}) {
      const auto photo = slow::photo(375, 500, channels, seed);
      slow::png_samples samples{.kind = {.width = 500, .height = 375, .color = channels == 1 ? 0U : 2U}};
      samples.sample.assign(photo.data(), photo.data() + photo.span().size());
      for (const int filter : {-1, 0, 4}) {
        const auto file = slow::make_png(samples, {.filter = filter, .seed = seed});
        const plain_libpng expected(file, plain_libpng::as::samples);
        REQUIRE(expected.error == "");
        CHECK(decode(file, {.layout = png_layout::samples}).pixels == expected.pixels);
      }
    }
}

TEST_CASE("colors beyond the palette are black, and indices do not matter") {
  const auto samples = slow::random_samples({.width = 20, .height = 20, .color = 3, .depth = 8}, 1);
  const auto file = slow::make_png(samples, {.colors = 3});
  const plain_libpng expected(file, plain_libpng::as::rgba);
  REQUIRE(expected.error == "");
  CHECK(decode(file, {.layout = png_layout::rgba}).pixels == expected.pixels);
  expect_samples(file, samples, {.right = 20, .bottom = 20});
}

TEST_CASE("without a palette there are indices, but no colors") {
  const auto samples = slow::random_samples({.width = 20, .height = 20, .color = 3, .depth = 8}, 1);
  const std::string text(slow::text_of_file(slow::make_png(samples)));
  const auto file = slow::file_of_text(text.substr(0, 33) + text.substr(text.find("IDAT") - 4));
  CHECK(decode(file, {}).error == "the PNG has no palette, but its pixels are palette indices");
  expect_samples(file, samples, {.right = 20, .bottom = 20});
}

TEST_CASE("a wrong tRNS matters only if alpha is used") {
  const auto samples = slow::random_samples({.width = 3, .height = 3}, 1);
  const auto file = slow::make_png(samples);
  const auto wrong_size = slow::with_chunk(file, "tRNS", "abcd", "IDAT");
  CHECK(decode(wrong_size, {}).error == "");
  CHECK(decode(wrong_size, {.layout = png_layout::rgba}).error ==
        "the PNG's tRNS has the wrong size: got 4 bytes, expected 6");
  auto wrong_crc = slow::with_chunk(file, "tRNS", "abcdef", "IDAT");
  wrong_crc[slow::text_of_file(wrong_crc).find("tRNS") + 6] ^= std::byte{1};
  CHECK(decode(wrong_crc, {}).error == "");
  CHECK(decode(wrong_crc, {.composite = true}).error ==
        "the PNG's tRNS (transparency) has a wrong CRC");
  CHECK(decode(wrong_crc, {.composite = true}, {}, {.check_sums = false}).error == "");
  const auto few = slow::make_png(slow::random_samples({.width = 3, .height = 3, .color = 3}, 1), {.colors = 2});
  CHECK(decode(slow::with_chunk(few, "tRNS", "abc", "IDAT"), {.layout = png_layout::rgba}).error ==
        "the PNG's tRNS has the wrong size: got 3 bytes, expected 1 to 2");
}

TEST_CASE("a file that is cut anywhere returns the rows before the cut, and an error") {
  mr::rng d({.seed = 4});
  for (const auto& kind : {slow::png_kind{.width = 30, .height = 20},
                           slow::png_kind{.width = 9, .height = 30, .color = 3},
                           slow::png_kind{.width = 20, .height = 12, .color = 0, .depth = 16, .interlaced = true}})
    for (const int level : {0, 6}) {
      const auto samples = slow::random_samples(kind, d.bits());
      const auto file = slow::make_png(samples, {.piece_bytes = 300, .level = level, .seed = d.bits()});
      const outcome reference = decode(file, {.layout = png_layout::samples});
      REQUIRE(reference.error == "");
      std::size_t last_rows = 0;
      for (std::size_t cut = 0; cut < file.size(); ++cut) {
        // Of exactly that size, so that a sanitizer detects reads beyond the end.
        const std::vector<std::byte> part(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(cut));
        const outcome got = decode(part, {.layout = png_layout::samples});
        CAPTURE(cut);
        CAPTURE(got.error);
        REQUIRE(got.error != "");
        REQUIRE(std::equal(got.pixels.begin(), got.pixels.end(), reference.pixels.begin()));
        REQUIRE(got.rows >= last_rows);
        last_rows = got.rows;
        if (got.rows > 0 && got.rows < kind.height)
          REQUIRE(got.error == "the PNG is truncated: it ends after " + std::to_string(cut) + " bytes, inside row " +
                                   std::to_string(got.rows) + " of " + std::to_string(kind.height));
        if (got.rows < 2) continue;
        // A region above the cut has no damage.
        const outcome above = decode(part, {.layout = png_layout::samples},
                                     png_region{.right = kind.width, .bottom = std::min(got.rows, kind.height - 1)});
        if (!kind.interlaced) REQUIRE(above.error == "");
      }
      CHECK(last_rows == kind.height);
    }
}

TEST_CASE("each kind of damage has its own message") {
  const slow::png_kind kind{.width = 4, .height = 3};
  const auto samples = slow::random_samples(kind, 1);
  const slow::png_recipe how{.filter = 0, .piece_bytes = 1000};
  std::string rows = slow::filtered_rows(samples, how);
  const auto error = [&](std::string_view stream, const slow::png_recipe& with) {
    return decode(slow::png_with_stream(kind, with, stream), {}).error;
  };
  const std::string stream = slow::deflated(rows, how);
  CHECK(error(stream, how) == "");
  CHECK(error(slow::deflated(rows.substr(0, 20), how), how) ==
        "the PNG has too few bytes: its compressed data ends inside row 1 of 3");
  slow::png_recipe stored = how;
  stored.level = 0;
  const std::string plain = slow::deflated(rows, stored);
  CHECK(error(plain.substr(0, 7 + 20), how) ==
        "the PNG has too few bytes: its chunks of image data end inside row 1 of 3");
  CHECK(error(plain.substr(0, plain.size() - 2), how) ==
        "the PNG's compressed data is damaged after its last row: got the end of the input");
  std::string sum = plain;
  sum.back() ^= 1;
  CHECK(error(sum, how).starts_with("the PNG's pixels have a wrong Adler-32: got "));
  CHECK(decode(slow::png_with_stream(kind, how, sum), {}, {}, {.check_sums = false}).error == "");
  CHECK(error("\x78\x02" + plain.substr(2), how) ==
        "the PNG's compressed data is damaged at row 0 of 3: got an invalid zlib header");
  CHECK(error(plain.substr(0, 2) + "\x07", how) ==
        "the PNG's compressed data is damaged at row 0 of 3: got a block of an unknown type");
  rows[13] = 5;
  CHECK(error(slow::deflated(rows, how), how) == "the PNG has a damaged row 1 of 3: got filter 5, expected 0 to 4");
  rows[13] = 0;
  CHECK(error(slow::deflated(rows + "more", how), how) == "");   // like libpng
  const slow::png_recipe pieces{.filter = 0, .piece_bytes = 20};
  auto file = slow::png_with_stream(kind, pieces, plain);
  const std::size_t second = slow::text_of_file(file).find("IDAT", slow::text_of_file(file).find("IDAT") + 4);
  file[second + 4] ^= std::byte{1};
  const outcome got = decode(file, {});
  CHECK(got.rows == 1);
  CHECK(got.error.starts_with("the PNG's chunk IDAT at byte " + std::to_string(second - 4) + " has a wrong CRC: got "));
  CHECK(got.error.ends_with(", at row 1 of 3"));
  file = slow::with_chunk(slow::make_png(samples), "bOOm", "", "IEND");
  CHECK(decode(file, {}).error == "");
  file = slow::with_chunk(slow::make_png(samples), "BOOm", "", "IEND");
  CHECK(decode(file, {}).error.ends_with(", which this decoder does not support"));
  file[slow::text_of_file(file).find("BOOm") + 4] ^= std::byte{1};
  CHECK(decode(file, {}).error.starts_with("the PNG's chunk BOOm at byte "));
  CHECK(decode(file, {}, png_region{.right = 4, .bottom = 2}).error == "");
  file = slow::with_chunk(slow::make_png(samples), "IDAT", "more", "IEND");
  CHECK(decode(file, {}).error == "");
  slow::png_kind passes = kind;
  passes.interlaced = true;
  const auto in_passes = slow::random_samples(passes, 1);
  const std::string all = slow::deflated(slow::filtered_rows(in_passes, how), stored);
  CHECK(decode(slow::png_with_stream(passes, how, all.substr(0, 7 + 15)), {}).error ==
        "the PNG has too few bytes: its chunks of image data end inside row 0 of 2 in pass 6 of 7");
}

TEST_CASE("a forged size allocates no memory") {
  auto samples = slow::random_samples({.width = 9, .height = 2, .color = 6, .depth = 16}, 1);
  const std::string stream = slow::deflated(slow::filtered_rows(samples, {}), {});
  for (const bool interlaced : {false, true}) {
    const slow::png_kind forged{.width = 170'000'000, .height = 1, .color = 6, .depth = 16, .interlaced = interlaced};
    const auto file = slow::png_with_stream(forged, {}, stream);
    CHECK(decode(file, {}).error.starts_with("the PNG is too short for its declared size: got " +
                                             std::to_string(stream.size() + 24) +
                                             " bytes of compressed data, expected enough for 1360000"));
  }
}

TEST_CASE("damage at random places is refused where libpng refuses it, and rows before it are right") {
  mr::rng d({.seed = 5});
  std::size_t refused = 0, accepted = 0;
  for (int i = 0; i < 6'000; i += static_cast<int>(stride(10))) {
    std::vector<slow::png_kind> kinds;
    slow::for_each_png_kind([&](const slow::png_kind& k) { kinds.push_back(k); });
    slow::png_kind kind = kinds[d.below(kinds.size())];
    kind.width = d.below(40) + 1;
    kind.height = d.below(30) + 1;
    auto file = slow::make_png(slow::random_samples(kind, d.bits()),
                               {.piece_bytes = d.below(400) + 1, .seed = d.bits()});
    const std::size_t begin = d.chance(0.8) ? slow::text_of_file(file).find("IDAT") + 4 : 29;
    for (std::uint64_t k = d.below(3) + 1; k > 0; --k)
      file[begin + d.below(file.size() - begin)] ^= static_cast<std::byte>(1U << d.below(8));
    const bool check_sums = d.chance(0.3);
    const plain_libpng expected(file, plain_libpng::as::samples, check_sums);
    const outcome got = decode(file, {.layout = png_layout::samples}, {}, {.check_sums = check_sums});
    CAPTURE(i);
    CAPTURE(got.error);
    CAPTURE(expected.error);
    if (got.error.empty()) {
      // Without checksums libpng checks other properties after the last row.
      if (check_sums) REQUIRE(expected.error == "");
      if (expected.error.empty()) REQUIRE(got.pixels == expected.pixels);
      ++accepted;
    } else {
      ++refused;
    }
    const std::size_t rows = std::min(got.rows, expected.rows_read);
    REQUIRE(std::equal(got.pixels.begin(), got.pixels.begin() + static_cast<std::ptrdiff_t>(rows * got.row_bytes),
                       expected.pixels.begin()));
    if (expected.error.empty() && !got.error.empty())
      REQUIRE((got.rows == kind.height || kind.interlaced || got.error.find("palette") != std::string::npos ||
               got.error.find("chunk") != std::string::npos));
  }
  CHECK(refused > 100);
  CHECK(accepted > 20);
}
