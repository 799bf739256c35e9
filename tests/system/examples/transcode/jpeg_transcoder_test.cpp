#include <transcode/jpeg_transcoder.hpp>

#include <millrace/image/jpeg/baseline/jpeg_plane_decoder.hpp>

#include "../../../unit/image/jpeg_recipes.hpp"
#include "transcoder_layouts.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace mr = millrace;

namespace {

using transcode::jpeg_codes, transcode::jpeg_coefficients, transcode::jpeg_symbol_counts,
      transcode::jpeg_transcode_options, transcode::restart_interval_of, transcode::transcode_jpeg;
using slow::decode, slow::layout, slow::layouts, slow::one, slow::pixels, slow::same_pixels;

std::string problem_of(std::span<const std::byte> file, const jpeg_transcode_options& options = {}) {
  try {
    (void)transcode_jpeg(file, options);
    return "";
  } catch (const mr::data_error& e) {
    CHECK(e.where().stage == "jpeg");
    return e.what();
  }
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("every kind of file becomes a baseline file with the same coefficients, pixels and markers") {
  mr::rng random({.seed = 1});
  mr::detail::jpeg_plane_decoder own;
  for (const auto& l : layouts)
    for (const bool progressive : {false, true})
      for (const bool arithmetic : {false, true})
        for (const bool scan_for_each : {false, true})
          for (const unsigned restarts_per_row : {0U, 1U, 3U}) {
            if (progressive && scan_for_each) continue;   // it has its own script of scans
            const slow::jpeg_recipe recipe{.stored = l.stored, .sampling = l.sampling,
                                           .quality = static_cast<int>(random.between(1, 100)),
                                           .progressive = progressive, .arithmetic = arithmetic,
                                           .optimize_tables = random.chance(0.5), .scan_for_each = scan_for_each,
                                           .restart_interval = static_cast<unsigned>(random.below(6)),
                                           .markers = {{JPEG_APP0 + 1, std::string("Exif\0\0 not much", 15)},
                                                       {JPEG_COM, "a comment"}}};
            const auto before = slow::make_jpeg(pixels(l, random), recipe);
            const auto after = transcode_jpeg(before, {.restarts_per_row = restarts_per_row});
            REQUIRE(slow::coefficients(after) == slow::coefficients(before));
            REQUIRE(same_pixels(decode(after, l), decode(before, l)));
            REQUIRE(slow::leading_markers(after) == slow::leading_markers(before));
            const auto header = mr::read_jpeg_header(after);
            CHECK_FALSE(header.progressive);
            CHECK_FALSE(header.arithmetic);
            const auto result = own.decode({.bytes = after});
            CHECK_MESSAGE(static_cast<bool>(result) == l.own_decoder, std::string(refusal_name(result.refusal)));
            CHECK(transcode_jpeg(before, {.restarts_per_row = restarts_per_row}) == after);
            CHECK(transcode_jpeg(after, {.restarts_per_row = restarts_per_row}) == after);
          }
}

TEST_CASE("a baseline file becomes smaller or stays unchanged") {
  mr::rng random({.seed = 2});
  for (const auto& l : layouts)
    for (int i = 0; i < 8; ++i) {
      slow::jpeg_recipe recipe{.stored = l.stored, .sampling = l.sampling,
                               .quality = static_cast<int>(random.between(5, 100))};
      const auto picture = pixels(l, random);
      const auto plain = slow::make_jpeg(picture, recipe);
      CHECK(transcode_jpeg(plain).size() < plain.size());   // the standard's tables alone are 420 bytes
      recipe.optimize_tables = true;
      const auto optimized = slow::make_jpeg(picture, recipe);
      CHECK(transcode_jpeg(optimized) == optimized);
      recipe.restart_interval = 1;
      CHECK(transcode_jpeg(slow::make_jpeg(picture, recipe)).size() <= optimized.size());
    }
}

TEST_CASE("a smaller sequential file with one scan is kept with any tables") {
  // Coefficients that fit the standard's tables, which AVI frames leave out: 420 bytes less.
  const auto complete = slow::make_jpeg(slow::photo(16, 16, 3, 5), {.quality = 30});
  std::vector<std::byte> without;
  for (std::size_t i = 0; i < complete.size();) {
    if (complete[i] != std::byte{0xff} || complete[i + 1] != std::byte{0xc4}) without.push_back(complete[i++]);
    else i += 2 + (std::to_integer<std::size_t>(complete[i + 2]) << 8) + std::to_integer<std::size_t>(complete[i + 3]);
  }
  REQUIRE(without.size() + 400 < complete.size());
  CHECK(transcode_jpeg(without) == without);
}

TEST_CASE("restart markers divide each row of MCUs evenly") {
  const auto count = [](std::size_t width, unsigned per_row) {   // 3 rows of MCUs
    const slow::jpeg_recipe recipe{.sampling = {{{2, 2}, one, one, one}}, .optimize_tables = true};
    const auto plain = slow::make_jpeg(slow::photo(48, width, 3, 3), recipe);
    const auto file = transcode_jpeg(plain, {.restarts_per_row = per_row});
    return slow::restart_markers(file) + 1;   // the last interval ends without one
  };
  CHECK(count(192, 0) == 1);
  CHECK(count(192, 1) == 3);
  CHECK(count(192, 4) == 12);
  CHECK(count(192, 5) == 12);     // 12 MCUs in a row
  CHECK(count(192, 500) == 36);
  CHECK(count(176, 8) == 3);      // 11 of them
  CHECK(count(176, 11) == 33);
  CHECK(count(1, 8) == 3);
  const auto gray = slow::make_jpeg(slow::photo(48, 48, 1, 3), {.stored = JCS_GRAYSCALE, .sampling = {{{2, 2}}}});
  CHECK(slow::restart_markers(transcode_jpeg(gray, {.restarts_per_row = 3})) + 1 == 18);   // an MCU is a block
  CHECK(restart_interval_of(32, 8) == 4);
  CHECK(restart_interval_of(8188, 1) == 8188);
}

TEST_CASE("more blocks than a scan may contain get a scan for each component") {
  const slow::jpeg_recipe recipe{.sampling = {{{4, 2}, {2, 1}, {2, 1}, one}}, .arithmetic = true,
                                 .scan_for_each = true};
  const auto before = slow::make_jpeg(slow::photo(61, 77, 3, 4), recipe);
  const auto after = transcode_jpeg(before, {.restarts_per_row = 2});
  CHECK(slow::coefficients(after) == slow::coefficients(before));
  CHECK_FALSE(mr::read_jpeg_header(after).arithmetic);
  CHECK(transcode_jpeg(after, {.restarts_per_row = 2}).size() == after.size());
}

TEST_CASE("markers are unchanged, even where libjpeg would write others") {
  std::string profile(60'000, '\0');
  for (std::size_t i = 0; i < profile.size(); ++i) profile[i] = static_cast<char>(i * 7);
  const slow::jpeg_recipe recipe{.progressive = true,
                                 .markers = {{JPEG_APP0 + 1, std::string("Exif\0\0MM", 8)},
                                             {JPEG_APP0 + 2, "ICC_PROFILE" + profile},
                                             {JPEG_APP0 + 14, std::string("Adobe\0\144\0\0\0\0\1", 12)},
                                             {JPEG_COM, ""},
                                             {JPEG_APP0 + 2, "ICC_PROFILE" + profile},
                                             {JPEG_APP0 + 15, "x"}}};
  auto file = slow::make_jpeg(slow::photo(40, 50, 3, 6), recipe);
  CHECK(slow::leading_markers(transcode_jpeg(file)) == slow::leading_markers(file));
  file.erase(file.begin() + 2, file.begin() + 2 + 18);   // without JFIF's
  REQUIRE(file[3] == std::byte{0xe1});
  CHECK(slow::leading_markers(transcode_jpeg(file)) == slow::leading_markers(file));
  CHECK(slow::coefficients(transcode_jpeg(file)) == slow::coefficients(file));
}

TEST_CASE("markers between the scans move to the front, and many of them cost no extra time") {
  auto file = slow::make_jpeg(slow::photo(40, 50, 3, 13), {.progressive = true});
  std::size_t second_table = 0;
  for (std::size_t i = 0, tables = 0; i + 1 < file.size() && tables < 2; ++i)
    if (file[i] == std::byte{0xff} && file[i + 1] == std::byte{0xc4} && ++tables == 2) second_table = i;
  REQUIRE(second_table > 0);
  std::string comments;
  for (int i = 0; i < 150'000; ++i) comments += "\xff\xfe" + std::string{'\0', '\4', static_cast<char>(i), 'x'};
  const auto between = std::as_bytes(std::span(comments));
  file.insert(file.begin() + static_cast<std::ptrdiff_t>(second_table), between.begin(), between.end());
  const auto transcoded = transcode_jpeg(file);
  CHECK(slow::leading_markers(transcoded) == slow::leading_markers(file) + comments);
  CHECK(slow::coefficients(transcoded) == slow::coefficients(file));
}

TEST_CASE("junk between header segments and before the end is removed") {
  using namespace std::string_view_literals;
  for (const bool progressive : {false, true})
    for (const J_COLOR_SPACE stored : {JCS_GRAYSCALE, JCS_YCbCr}) {
      const auto file =
          slow::make_jpeg(slow::photo(60, 44, slow::channels_of(stored), 5),
                          {.stored = stored, .progressive = progressive, .restart_interval = 3});
      const auto clean = transcode_jpeg(file, {.restarts_per_row = 1});
      std::vector<std::size_t> places = slow::segments_of(file);
      places.push_back(file.size() - 2);
      for (const std::size_t at : places)
        for (const std::string_view junk :
             {"\x7f"sv, "\xff\0"sv, "seven b"sv, "\0\0\0\0\0"sv, "more bytes than are read ahead"sv}) {
          CAPTURE(at);
          CAPTURE(progressive);
          CAPTURE(junk.size());
          CHECK(transcode_jpeg(slow::with(file, at, junk), {.restarts_per_row = 1}) == clean);
        }
    }
}

TEST_CASE("a truncated file is refused wherever it is cut, and never completed") {
  for (const bool progressive : {false, true})
    for (const bool arithmetic : {false, true}) {
      const auto file =
          slow::make_jpeg(slow::photo(33, 40, 3, 7), {.progressive = progressive, .arithmetic = arithmetic});
      for (std::size_t size = 0; size < file.size(); size += size + 40 < file.size() ? 11 : 1)
        CHECK(problem_of(std::span(file).first(size)) != "");
    }
}

TEST_CASE("flipped bits are refused, or keep their coefficients") {
  mr::rng random({.seed = 8});
  const auto complete = slow::make_jpeg(slow::photo(40, 40, 3, 8), {.progressive = true});
  int refused = 0, accepted = 0;
  for (int i = 0; i < 400; ++i) {
    auto file = complete;
    file[random.below(file.size())] ^= std::byte{1} << static_cast<int>(random.below(8));
    if (problem_of(file) != "") ++refused;
    else if (++accepted) REQUIRE(slow::coefficients(transcode_jpeg(file)) == slow::coefficients(file));
  }
  CHECK(refused > 50);
  CHECK(accepted > 50);
}

TEST_CASE("a progressive file without its last scans is refused: decoders smooth over missing coefficients") {
  auto file = slow::make_jpeg(slow::photo(40, 40, 3, 9), {.progressive = true});
  std::size_t last_scan = 0;
  for (std::size_t i = 0; i + 1 < file.size(); ++i)
    if (file[i] == std::byte{0xff} && file[i + 1] == std::byte{0xda}) last_scan = i;
  file.resize(last_scan);
  file.insert(file.end(), {std::byte{0xff}, std::byte{0xd9}});
  CHECK(has(problem_of(file), "lacks scans"));
}

TEST_CASE("coefficients beyond baseline coding are refused, after any amount of output") {
  const slow::jpeg_recipe recipe{
      .arithmetic = true,
      .markers = {{JPEG_COM, std::string(65'000, 'c')}, {JPEG_COM, std::string(65'000, 'd')}},
      .more_in_coefficient = 20'000};
  const auto file = slow::make_jpeg(slow::photo(16, 16, 3, 10), recipe);
  CHECK(has(problem_of(file), "cannot be written as a baseline JPEG"));
  // libjpeg checks coefficients only while it computes codes.
  const jpeg_codes codes{jpeg_symbol_counts()};
  for (const int more : {1200, 20'000}) {
    slow::jpeg_recipe other = recipe;
    other.more_in_coefficient = more;
    const auto large = slow::make_jpeg(slow::photo(16, 16, 3, 10), other);
    CHECK(has(problem_of(large, {.codes = &codes}), "written as a baseline JPEG: a coefficient is too large"));
    CHECK(has(problem_of(large, {.restart_growth = 0.5}), "a coefficient is too large"));
  }
}

TEST_CASE("limits and foreign files are named") {
  const auto file = slow::make_jpeg(slow::photo(40, 40, 3, 11), {.progressive = true});
  CHECK(has(problem_of(file, {.limits = {.max_scans = 3}}), "more than 3 scans"));
  CHECK(has(problem_of(file, {.limits = {.max_memory_bytes = 5000}}), "more than 5000 bytes of memory"));
  CHECK(has(problem_of(std::as_bytes(std::span("\x89PNG and more"))), "a PNG"));
  CHECK(has(problem_of({}), "0 bytes"));
  const auto cut = std::span(file).first(file.size() - 40);
  CHECK(problem_of(cut, {.limits = {.accept_damaged = true}}) == problem_of(cut));
  CHECK(has(problem_of(cut), "it can only be kept"));
}

TEST_CASE("huge declared sides are refused before memory is allocated") {
  auto file = slow::make_jpeg(slow::photo(16, 16, 3, 14), {});
  const std::array start_of_frame{std::byte{0xff}, std::byte{0xc0}};
  const auto frame = std::search(file.begin(), file.end(), start_of_frame.begin(), start_of_frame.end());
  REQUIRE(file.end() - frame > 9);
  for (const int side : {5, 7}) {
    frame[side] = std::byte{65'500 >> 8};
    frame[side + 1] = std::byte{65'500 & 255};
  }
  REQUIRE(mr::read_jpeg_header(file).width == 65'500);
  CHECK(has(problem_of(file), "bytes of memory"));
}

TEST_CASE("the comparison detects any difference") {
  const auto picture = slow::photo(24, 24, 3, 12);
  const slow::jpeg_recipe recipe{.arithmetic = true, .markers = {{JPEG_COM, "one"}}};
  const auto same = [&](const mr::image& pixels_of_other, const slow::jpeg_recipe& other) {
    const auto one_file = slow::make_jpeg(picture, recipe), other_file = slow::make_jpeg(pixels_of_other, other);
    jpeg_coefficients a(one_file, {}), b(other_file, {});
    CHECK(a.same_as(b) == b.same_as(a));
    return a.same_as(b);
  };
  const auto changed = [&](auto change) {
    slow::jpeg_recipe other = recipe;
    change(other);
    return same(picture, other);
  };
  CHECK(same(picture, recipe));
  CHECK(changed([](auto& r) { r.progressive = true; }));
  CHECK_FALSE(changed([](auto& r) { r.more_in_coefficient = 1; }));
  CHECK_FALSE(changed([](auto& r) { r.quality = 91; }));
  CHECK_FALSE(changed([](auto& r) { r.sampling[0] = {2, 1}; }));
  CHECK_FALSE(changed([](auto& r) { r.stored = JCS_RGB; }));
  CHECK_FALSE(changed([](auto& r) { r.markers[0].payload = "two"; }));
  CHECK_FALSE(changed([](auto& r) { r.markers.push_back(r.markers[0]); }));
  CHECK_FALSE(changed([](auto& r) { r.markers.clear(); }));
  CHECK_FALSE(same(slow::photo(24, 25, 3, 12), recipe));

  const auto file = slow::make_jpeg(picture, recipe);
  auto coarser = file;
  for (std::size_t i = 0; i + 5 < coarser.size(); ++i)
    if (coarser[i] == std::byte{0xff} && coarser[i + 1] == std::byte{0xdb}) coarser[i + 5] = std::byte{77};
  jpeg_coefficients fine(file, {}), coarse(coarser, {});
  CHECK_FALSE(fine.same_as(coarse));   // equal coefficients, different quantization
}
