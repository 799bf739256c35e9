#include <transcode/jpeg_transcoder.hpp>

#include <millrace/base/error.hpp>
#include <millrace/image/jpeg/baseline/jpeg_plane_decoder.hpp>

#include "transcoder_layouts.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <vector>

namespace mr = millrace;

namespace {

using transcode::jpeg_codes, transcode::jpeg_coefficients, transcode::jpeg_symbol_counts,
      transcode::jpeg_transcode_options, transcode::jpeg_transcoder, transcode::jpeg_walk,
      transcode::transcode_jpeg;
using slow::decode, slow::layout, slow::layouts, slow::one, slow::pixels, slow::same_pixels;

}  // namespace

TEST_CASE("shared codes and restarts anywhere keep every kind of file's coefficients, pixels and markers") {
  mr::rng random({.seed = 14});
  mr::detail::jpeg_plane_decoder own;
  std::vector<std::vector<std::byte>> files;
  std::vector<const layout*> layout_of;
  jpeg_symbol_counts counts;
  for (const auto& l : layouts)
    for (const bool progressive : {false, true})
      for (int i = 0; i < 6; ++i) {
        files.push_back(slow::make_jpeg(pixels(l, random),
                                        {.stored = l.stored, .sampling = l.sampling,
                                         .quality = static_cast<int>(random.between(1, 100)),
                                         .progressive = progressive, .arithmetic = random.chance(0.3),
                                         .restart_interval = static_cast<unsigned>(random.below(6)),
                                         .markers = {{JPEG_APP0 + 1, std::string("Exif\0\0 not much", 15)}}}));
        layout_of.push_back(&l);
        if (i < 3) jpeg_transcoder(files.back()).count_symbols(counts);   // the codes fit the others too
      }
  const jpeg_codes codes(counts), none_counted{jpeg_symbol_counts()};
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto& before = files[i];
    for (const jpeg_codes* const shared : {&codes, &none_counted, static_cast<const jpeg_codes*>(nullptr)}) {
      const auto interval = static_cast<unsigned>(random.below(12));
      const bool by_growth = random.chance(0.5);
      const jpeg_transcode_options options{.restart_interval = by_growth ? 0 : interval,
                                               .restart_growth = by_growth ? random.uniform() : 0, .codes = shared};
      const auto after = transcode_jpeg(before, options);
      REQUIRE(slow::coefficients(after) == slow::coefficients(before));
      REQUIRE(same_pixels(decode(after, *layout_of[i]), decode(before, *layout_of[i])));
      REQUIRE(slow::leading_markers(after) == slow::leading_markers(before));
      CHECK_FALSE(mr::read_jpeg_header(after).progressive);
      CHECK(static_cast<bool>(own.decode({.bytes = after})) == layout_of[i]->own_decoder);
      CHECK(transcode_jpeg(after, options) == after);
      jpeg_coefficients written(after, {});
      CHECK(written.restart_interval() == jpeg_transcoder(before, options).restart_interval());
      if (!by_growth) CHECK(written.restart_interval() == interval);
    }
  }
}

TEST_CASE("symbols are counted as libjpeg writes them") {
  // An image's own code has words only for symbols that occur, and the counts are those of the best code.
  mr::rng random({.seed = 15});
  for (const auto& l : layouts)
    for (const unsigned interval : {0U, 1U, 3U, 7U}) {
      const auto before = slow::make_jpeg(pixels(l, random), {.stored = l.stored, .sampling = l.sampling,
                                                              .quality = static_cast<int>(random.between(20, 99))});
      jpeg_transcoder transcoder(before, {.restart_interval = interval});
      jpeg_symbol_counts counts;
      transcoder.count_symbols(counts);
      CHECK(counts.pictures == 1);
      const auto after = transcoder.write();
      std::array<std::array<std::vector<std::size_t>, 2>, 2> coded, counted;   // [AC][table]: symbols
      mr::detail::for_each_jpeg_segment(after, [&](unsigned marker, std::span<const std::byte> segment) {
        const auto byte = [&](std::size_t at) { return std::to_integer<std::size_t>(segment[at]); };
        for (std::size_t at = 4; marker == 0xc4 && at < segment.size();) {
          auto& symbols = coded[byte(at) >> 4][byte(at) & 15];
          std::size_t words = 0;
          for (std::size_t length = 1; length <= 16; ++length) words += byte(at + length);
          symbols.clear();   // keeps only the last scan's: files with several scans have one table for each
          for (std::size_t i = 0; i < words; ++i) symbols.push_back(byte(at + 17 + i));
          std::sort(symbols.begin(), symbols.end());
          at += 17 + words;
        }
      });
      for (std::size_t t = 0; t < 2; ++t) {
        for (std::size_t s = 0; s < counts.dc[t].size(); ++s)
          if (counts.dc[t][s] != 0) counted[0][t].push_back(s);
        for (std::size_t s = 0; s < counts.ac[t].size(); ++s)
          if (counts.ac[t][s] != 0) counted[1][t].push_back(s);
      }
      CHECK(coded == counted);
    }
}

TEST_CASE("restarts by growth use the shortest interval within the cost, and report the cost") {
  mr::rng random({.seed = 16});
  for (int i = 0; i < 12; ++i) {
    const bool gray = i % 4 == 3;
    const auto picture = slow::photo(150 + random.below(200), 150 + random.below(200), gray ? 1 : 3, random.bits());
    const auto file = slow::make_jpeg(picture,
                                      {.stored = gray ? JCS_GRAYSCALE : JCS_YCbCr,
                                       .sampling = {{{i % 2 ? 2 : 1, i % 2 ? 2 : 1}, {1, 1}, {1, 1}, {1, 1}}},
                                       .quality = static_cast<int>(random.between(30, 95)), .optimize_tables = true});
    const std::size_t plain = transcode_jpeg(file).size();
    unsigned before = 0;
    for (const double growth : {0.001, 0.01, 0.02, 0.05, 1.0}) {
      jpeg_transcoder transcoder(file, {.restart_growth = growth});
      const unsigned interval = transcoder.restart_interval();
      CHECK((before == 0 || (interval != 0 && interval <= before)));
      before = interval;
      CHECK((interval == 0 || interval >= (i % 2 && !gray ? 4U : 8U)));
      const auto grown = static_cast<double>(transcoder.write().size() - plain);
      // libjpeg's own codes are not optimal, and stuffed bytes are not counted.
      CHECK(grown <= growth * static_cast<double>(plain) + 32);
      CHECK(transcoder.restart_bytes() == doctest::Approx(grown).epsilon(0.1).scale(300));
    }
    CHECK(before == (i % 2 && !gray ? 4U : 8U));
  }
}

TEST_CASE("a crop's decoder reads each row from a restart before the crop to its right edge") {
  const auto file = slow::make_jpeg(slow::photo(100, 150, 3, 17), {.sampling = {{{2, 2}, one, one, one}}});
  constexpr std::uint64_t in_row = 10, rows = 7;
  for (const unsigned interval : {0U, 1U, 3U, 4U, 20U, 1000U}) {
    const jpeg_transcoder transcoder(file, {.restart_interval = interval});
    for (std::uint64_t sample = 0; sample < 200; ++sample) {
      mr::rng random({.seed = 1, .sample = sample}), again = random;
      const jpeg_walk walk = transcoder.walk_of_random_crop(random);
      const mr::crop_box box = mr::detail::random_crop_box({.width = 150, .height = 100}, again);
      std::vector<bool> read(in_row * rows, false);
      std::uint64_t last = 0;
      for (std::uint64_t mcu = 0; mcu < in_row * rows; ++mcu) {
        const std::uint64_t x = mcu % in_row * 16, y = mcu / in_row * 16;
        const bool expected =
            x + 16 > box.left && x < box.left + box.width && y + 16 > box.top && y < box.top + box.height;
        if (!expected) continue;
        last = mcu + 1;
        for (std::uint64_t i = interval == 0 ? 0 : mcu - mcu % interval; i <= mcu; ++i) read[i] = true;
      }
      CHECK(walk.all == in_row * rows);
      CHECK(walk.without_restarts == last);
      CHECK(walk.with_restarts == static_cast<std::uint64_t>(std::count(read.begin(), read.end(), true)));
    }
  }
}

TEST_CASE("only the standard's codes are kept if a file has them") {
  const auto tables = [](std::span<const std::byte> file) {
    std::string all;
    mr::detail::for_each_jpeg_segment(file, [&](unsigned marker, std::span<const std::byte> segment) {
      if (marker == 0xc4) all.append(reinterpret_cast<const char*>(segment.data()) + 4, segment.size() - 4);
    });
    return all;
  };
  mr::rng random({.seed = 19});
  const std::string of_standard = tables(slow::make_jpeg(slow::photo(20, 20, 3, 1), {}));
  REQUIRE(of_standard.size() == 2 * (17 + 12) + 2 * (17 + 162));
  for (const auto& l : layouts) {
    const auto picture = pixels(l, random);
    slow::jpeg_recipe recipe{.stored = l.stored, .sampling = l.sampling, .quality = 80};
    const auto standard = slow::make_jpeg(picture, recipe);
    const auto transcoded = transcode_jpeg(standard, {.restart_interval = 2, .keep_standard_codes = true});
    CHECK(tables(transcoded) == tables(standard));
    CHECK(slow::coefficients(transcoded) == slow::coefficients(standard));
    CHECK(transcode_jpeg(standard, {.keep_standard_codes = true}) == standard);
    CHECK(tables(transcode_jpeg(standard, {.restart_interval = 2})) != tables(standard));
    recipe.optimize_tables = true;
    const auto optimized = slow::make_jpeg(picture, recipe);
    CHECK(transcode_jpeg(optimized, {.restart_interval = 2, .keep_standard_codes = true}) ==
          transcode_jpeg(optimized, {.restart_interval = 2}));
    recipe.progressive = true;
    const auto progressive = slow::make_jpeg(picture, recipe);
    CHECK(transcode_jpeg(progressive, {.keep_standard_codes = true}) == transcode_jpeg(progressive));
  }
}

TEST_CASE("restarts that contradict each other are refused") {
  const auto file = slow::make_jpeg(slow::photo(20, 20, 3, 18), {});
  for (const jpeg_transcode_options& options :
       {jpeg_transcode_options{.restarts_per_row = 1, .restart_interval = 1},
        jpeg_transcode_options{.restarts_per_row = 1, .restart_growth = 0.1},
        jpeg_transcode_options{.restart_interval = 65'536}, jpeg_transcode_options{.restart_growth = 1.5},
        jpeg_transcode_options{.restart_growth = -0.1},
        jpeg_transcode_options{.restart_growth = std::numeric_limits<double>::quiet_NaN()}})
    CHECK_THROWS_AS((void)transcode_jpeg(file, options), mr::setup_error);
}
