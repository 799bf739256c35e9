#include <millrace/image/jpeg/baseline/jpeg_plane_decoder.hpp>
#include <millrace/image/jpeg/jpeg_header.hpp>

#include "../../../../thorough.hpp"
#include "../../jpeg_recipes.hpp"
#include "../../random_jpegs.hpp"
#include "../../photographs.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <set>

namespace mr = millrace;
using slow::count_of, slow::damaged, slow::draw_file, slow::random_jpeg, slow::exact_request, slow::random_region,
    slow::seed_of_run;

namespace {

/// The kinds of files and requests of a run, each once.
struct tested_kinds {
  std::set<std::size_t> widths, heights;
  std::set<int> qualities;
  std::set<unsigned> restart_intervals;
  std::set<std::array<int, 4>> combinations;   // sampling, own tables, restart markers, full or crop
  std::set<std::array<int, 2>> scales;         // sampling, eighths of the size

  void add(const random_jpeg& f, const mr::detail::jpeg_planes_request& request) {
    widths.insert(f.width);
    heights.insert(f.height);
    qualities.insert(f.recipe.quality);
    restart_intervals.insert(f.recipe.restart_interval);
    const int luma = f.channels == 1 ? 0 : 10 * f.recipe.horizontal + f.recipe.vertical;
    combinations.insert({luma, f.recipe.optimize_tables, f.recipe.restart_interval != 0,
                         request.right == mr::detail::jpeg_planes_request::all});
    scales.insert({luma, request.eighths});
  }
};

slow::raw_planes by_libjpeg(const random_jpeg& f, const mr::detail::jpeg_planes_request& request) {
  return slow::raw_reader().read(f.bytes, f.height, request.eighths);
}

void compare(const random_jpeg& f, const mr::detail::jpeg_planes_request& request,
             const mr::detail::jpeg_planes_result& got,
             const slow::raw_planes& expected) {
  INFO(describe(f));
  CAPTURE(request.eighths);
  CHECK(std::string(refusal_name(got.refusal)) == "none");
  if (!got) return;
  CHECK(slow::covers(got.planes, request));
  CHECK(slow::difference_of(got.planes, expected) == "");
}

}  // namespace

TEST_CASE("planes are those of libjpeg, alone and in pairs, by every processor's code") {
  mr::rng d({.seed = seed_of_run(), .sample = 1});
  mr::detail::jpeg_plane_decoder best, portable(mr::detail::jpeg_plane_decoder::code::portable);
  const std::size_t pairs = count_of("MILLRACE_TEST_PICTURES", 1'500) / 2;
  tested_kinds kinds;
  for (std::size_t i = 0; i < pairs; ++i) {
    const random_jpeg a = draw_file(d, 64), b = draw_file(d, d.chance(0.05) ? 400 : 64);
    const exact_request x(a.bytes, random_region(d, a)), y(b.bytes, random_region(d, b));
    kinds.add(a, x.request);
    const auto expected_a = by_libjpeg(a, x.request), expected_b = by_libjpeg(b, y.request);
    for (auto* decoder : {&best, &portable}) {
      compare(a, x.request, decoder->decode(x.request), expected_a);
      const auto both = decoder->decode(x.request, y.request);
      compare(a, x.request, both[0], expected_a);
      compare(b, y.request, both[1], expected_b);
    }
  }
  if (pairs < 750) return;
  CHECK(kinds.widths.size() == 64);
  CHECK(kinds.heights.size() == 64);
  CHECK(kinds.qualities.size() == 100);
  CHECK(kinds.restart_intervals.size() == 41);
  CHECK(kinds.combinations.size() == 5 * 2 * 2 * 2);
  CHECK(kinds.scales.size() == 5 * 4);
}

TEST_CASE("planes of photographs are those of libjpeg, alone and together with the previous one") {
  mr::rng d({.seed = seed_of_run(), .sample = 4});
  mr::detail::jpeg_plane_decoder best, portable(mr::detail::jpeg_plane_decoder::code::portable);
  std::vector<std::byte> partner = slow::make_file(slow::photo(40, 50, 3, 1), {});
  std::size_t supported = 0, left = 0;
  slow::for_each_photograph([&](const std::string& name, const std::vector<std::byte>& file) {
    CAPTURE(name);
    const auto why = mr::refusal_of_header(file), refusal = best.decode({.bytes = file}).refusal;
    if (why != mr::jpeg_refusal::none || refusal == mr::jpeg_refusal::progressive) {
      if (why != mr::jpeg_refusal::none) CHECK(refusal == why);
      ++left;
      return;
    }
    const auto header = mr::read_jpeg_header(file);
    const exact_request other(partner, {});
    for (int k = 0; k < 3; ++k) {
      const exact_request x(file, random_region(d, header.width, header.height));
      const auto expected = slow::raw_reader(1 << 30).read(file, header.height, x.request.eighths);
      CHECK(expected.warnings == 0);
      const bool first = d.chance(0.5);
      for (auto* decoder : {&best, &portable}) {
        const auto alone = decoder->decode(x.request);
        REQUIRE(alone);
        CHECK(slow::difference_of(alone.planes, expected) == "");
        const auto both =
            first ? decoder->decode(x.request, other.request) : decoder->decode(other.request, x.request);
        CHECK(slow::covers(both[first ? 0 : 1].planes, x.request));
        CHECK(slow::difference_of(both[first ? 0 : 1].planes, expected) == "");
      }
    }
    ++supported;
    partner = file;
  });
  MESSAGE(supported << " photographs by the built-in decoder, " << left << " left to other decoders");
  CHECK(supported > 0);
}

TEST_CASE("damaged files are refused, or have the planes of libjpeg, without a warning for the decoded part") {
  mr::rng d({.seed = seed_of_run(), .sample = 2});
  mr::detail::jpeg_plane_decoder best, portable(mr::detail::jpeg_plane_decoder::code::portable);
  const std::size_t files = count_of("MILLRACE_TEST_DAMAGED", 1'500);
  std::size_t refused = 0, accepted = 0, warned = 0, unseen = 0;
  for (std::size_t i = 0; i < files; ++i) {
    const random_jpeg good = draw_file(d, 40);
    random_jpeg bad = draw_file(d, 64);
    const auto request = random_region(d, bad);
    bad.bytes = damaged(bad.bytes, d);
    const exact_request x(bad.bytes, request), y(good.bytes, random_region(d, good));
    const auto got = best.decode(x.request);
    std::string planes_differ;
    if (got) {
      const auto bottom = std::min<std::size_t>(request.bottom, static_cast<std::size_t>(got.planes.image_height));
      const auto expected = slow::raw_reader().read(bad.bytes, bottom, request.eighths);
      INFO(describe(bad));
      CHECK(!expected.error);
      // Damage in an interval that is left out is not detected.
      const bool left_out = got.entries != mr::detail::entry_origin::none;
      CHECK((expected.warnings == 0 || left_out));
      unseen += expected.warnings != 0;
      CHECK(slow::difference_of(got.planes, expected) == "");
      ++accepted;
    } else {
      ++refused;
      warned += by_libjpeg(bad, request).warnings != 0;
    }
    CHECK(portable.decode(x.request).refusal == got.refusal);
    // The partner's planes are the same as without it.
    const auto expected = by_libjpeg(good, y.request);
    const bool first = d.chance(0.5);
    const auto both = first ? best.decode(x.request, y.request) : best.decode(y.request, x.request);
    CHECK(both[first ? 0 : 1].refusal == got.refusal);
    compare(good, y.request, both[first ? 1 : 0], expected);
  }
  CHECK(refused > files / 4);
  CHECK(accepted > files / 10);
  CHECK(warned > files / 20);
  CHECK(unseen > 0);
  CHECK(unseen < files / 20);
}

/// The begins of the markers in a file's entropy-coded bytes.
std::vector<std::size_t> markers_of(const std::vector<std::byte>& file) {
  mr::detail::scan_header h;
  REQUIRE(mr::detail::read_scan_header(file, h) == mr::jpeg_refusal::none);
  std::vector<std::size_t> markers;
  for (std::size_t i = h.data_offset_bytes; i + 1 < file.size(); ++i)
    if (file[i] == std::byte{0xff} && file[i + 1] != std::byte{0}) markers.push_back(i);
  return markers;
}

TEST_CASE("restart intervals without a requested MCU are left out, if their markers are in order") {
  const random_jpeg f{{.quality = 90, .restart_interval = 4}, 160, 320, 3,
                     slow::make_file(slow::photo(160, 320, 3, 12), {.restart_interval = 4})};
  mr::detail::jpeg_plane_decoder decoder;
  const auto decoded = [&](const std::vector<std::byte>& file, mr::detail::jpeg_planes_request request) {
    request.bytes = file;
    return decoder.decode(request);
  };
  // 20 by 10 MCUs: 5 intervals a row. Requested are columns 9 and 10 of rows 3 and 4, in intervals 17 and 22.
  const mr::detail::jpeg_planes_request request{.left = 145, .top = 50, .right = 175, .bottom = 78};
  const auto got = decoded(f.bytes, request);
  compare(f, request, got, by_libjpeg(f, request));
  CHECK(got.entries == mr::detail::entry_origin::restart_markers);
  CHECK(decoded(f.bytes, {}).entries == mr::detail::entry_origin::none);
  CHECK(decoded(f.bytes, {.bottom = 16}).entries == mr::detail::entry_origin::none);

  const auto markers = markers_of(f.bytes);
  REQUIRE(markers.size() == 50);
  std::size_t unseen = 0, refused = 0;
  for (std::size_t k = 0; k < markers.size(); ++k) {
    auto other_bytes = f.bytes;   // the first ones of interval k + 1
    for (std::size_t i = markers[k] + 2; i < std::min(markers[k] + 6, f.bytes.size()); ++i)
      if (k + 1 < markers.size() && i < markers[k + 1]) other_bytes[i] = std::byte{0x5a};
    const auto other_result = decoded(other_bytes, request);
    unseen += other_result && slow::difference_of(other_result.planes, by_libjpeg(f, request)).empty();
    auto renumbered = f.bytes;
    renumbered[markers[k] + 1] ^= std::byte{1};
    auto missing = f.bytes;
    missing[markers[k] + 1] = std::byte{0};
    auto doubled = f.bytes;
    doubled.insert(doubled.begin() + static_cast<std::ptrdiff_t>(markers[k]), {f.bytes[markers[k]],
                                                                               f.bytes[markers[k] + 1]});
    for (const auto& bad : {renumbered, missing, doubled}) {
      // The marker after the last requested interval is not searched, because not all of that interval is requested.
      const bool looked_at = k < 22;
      CHECK((decoded(bad, request).refusal != mr::jpeg_refusal::none) == looked_at);
      refused += looked_at;
    }
  }
  CHECK(unseen == 48);   // all but the two that are requested
  CHECK(refused == 66);
}

TEST_CASE("markers are found at any offset, and stuffed bytes are not markers") {
  mr::rng d({.seed = seed_of_run(), .sample = 7});
  for (int i = 0; i < 3'000; ++i) {
    const std::size_t size = d.below(100);
    const auto memory = std::make_unique<std::uint8_t[]>(size);   // AddressSanitizer detects reads beyond the end
    for (std::size_t k = 0; k < size; ++k)
      memory[k] = static_cast<std::uint8_t>(d.chance(0.1) ? 255 : d.chance(0.8) ? 0 : d.below(256));
    std::size_t expected = 0;
    const auto is_marker = [&](std::size_t k) { return k + 1 < size && memory[k] == 255 && memory[k + 1] != 0; };
    while (expected < size && !is_marker(expected)) ++expected;
    CHECK(mr::detail::find_marker(memory.get(), memory.get() + size) == memory.get() + expected);
  }
}

TEST_CASE("with any Huffman codes, files that libjpeg refuses are refused, and the others have its planes") {
  mr::rng d({.seed = seed_of_run(), .sample = 3});
  mr::detail::jpeg_plane_decoder best, portable(mr::detail::jpeg_plane_decoder::code::portable);
  std::size_t supported = 0, impossible = 0;
  const auto any_code = [&](bool ac) { return d.chance(0.3) ? slow::full_code(d, ac) : slow::random_code(d, ac); };
  for (std::size_t i = 0; i < 1'500; ++i) {
    const slow::file_codes codes{.dc = any_code(false), .ac = any_code(true)};
    const auto file = slow::coded_file(codes, d);
    if (!file) continue;
    const exact_request x(*file, {});
    const auto expected = slow::raw_reader().read(*file, 40);
    const auto got = best.decode(x.request);
    CAPTURE(i);
    CHECK(portable.decode(x.request).refusal == got.refusal);
    if (expected.error) {
      CHECK(std::string(refusal_name(got.refusal)) == "tables");
      ++impossible;
    } else if (got) {
      CHECK(expected.warnings == 0);
      CHECK(slow::difference_of(got.planes, expected) == "");
      ++supported;
    }
  }
  CHECK(impossible > 200);
  CHECK(supported > 200);
}

TEST_CASE("a header that declares more than the file can contain costs no memory") {
  auto file = slow::make_file(slow::photo(16, 16, 3, 5), {});
  for (std::size_t i = 0; i + 9 < file.size(); ++i)
    if (file[i] == std::byte{0xff} && file[i + 1] == std::byte{0xc0}) {
      file[i + 5] = file[i + 7] = std::byte{0xf0};   // more than 61,000 by 61,000
      break;
    }
  mr::detail::jpeg_plane_decoder decoder;
  CHECK(decoder.decode({.bytes = file}).refusal == mr::jpeg_refusal::damaged);
}

TEST_CASE("a file that ends in fill bytes is left to libjpeg, which warns of it") {
  auto file = slow::make_file(slow::photo(16, 16, 3, 6), {});
  mr::detail::jpeg_plane_decoder decoder;
  CHECK(decoder.decode({.bytes = file}).refusal == mr::jpeg_refusal::none);
  file.back() = std::byte{0xff};
  file.resize(file.size() + 20, std::byte{0xff});
  CHECK(slow::raw_reader().read(file, 16).warnings == 1);
  CHECK(decoder.decode({.bytes = file}).refusal == mr::jpeg_refusal::damaged);
}

TEST_CASE("a longer list is decoded two at a time, each as if alone") {
  mr::rng d({.seed = seed_of_run(), .sample = 3});
  std::vector<random_jpeg> files;
  std::vector<mr::detail::jpeg_planes_request> requests;
  for (int i = 0; i < 40; ++i) {
    files.push_back(draw_file(d, 90));
    if (i % 7 == 3) files.back().bytes.resize(files.back().bytes.size() / 2);
  }
  for (const auto& f : files) {
    requests.push_back(random_region(d, f));
    requests.back().bytes = f.bytes;
  }
  mr::detail::jpeg_plane_decoder decoder, alone;
  std::vector<int> calls(files.size());
  decoder.decode_each(requests, [&](std::size_t i, const mr::detail::jpeg_planes_result& got) {
    ++calls[i];
    CHECK(got.refusal == alone.decode(requests[i]).refusal);
    if (got) compare(files[i], requests[i], got, by_libjpeg(files[i], requests[i]));
  });
  CHECK(calls == std::vector<int>(files.size(), 1));
  mr::scratch s;
  CHECK(decode_planes(requests[0], s).refusal == mr::jpeg_refusal::none);
  CHECK(decode_planes(requests[0], requests[1], s)[1].refusal == mr::jpeg_refusal::none);
}

TEST_CASE("images whose decoding stopped early, refused or not, change nothing in the next ones") {
  mr::rng d({.seed = seed_of_run(), .sample = 5});
  mr::detail::jpeg_plane_decoder decoders[] = {mr::detail::jpeg_plane_decoder(),
                                       mr::detail::jpeg_plane_decoder(mr::detail::jpeg_plane_decoder::code::portable)};
  const auto fill = slow::photo(200, 200, 3, 9);
  const auto large = slow::make_file(fill, {.quality = 95});
  auto cut = large;
  cut.resize(cut.size() - 100);
  struct left_early {};
  for (auto& decoder : decoders)
    for (std::size_t i = 0; i < 200; i += stride(4)) {
      // The large one is in progress in either job when the small one is ready.
      const auto small = slow::make_file(slow::photo(16 + d.below(60), 16, 3, 10), {});
      std::array<mr::detail::jpeg_planes_request,
        2> both{mr::detail::jpeg_planes_request{.bytes = large}, {.bytes = small}};
      if (d.chance(0.5)) std::swap(both[0], both[1]);
      CHECK_THROWS_AS(decoder.decode_each(both, [](std::size_t, const auto&) { throw left_early(); }), left_early);
      if (d.chance(0.5)) CHECK(decoder.decode({.bytes = cut}).refusal == mr::jpeg_refusal::damaged);
      const auto f = draw_file(d, 64);
      const exact_request x(f.bytes, random_region(d, f));
      const auto expected = by_libjpeg(f, x.request);
      for (const auto& got : decoder.decode(x.request, x.request)) compare(f, x.request, got, expected);
      for (const auto& got : decoder.decode({.bytes = large}, {.bytes = large}))
        CHECK(slow::difference_of(got.planes, slow::raw_reader().read(large, 200)) == "");
    }
}

TEST_CASE("moving a decoder leaves the memory of its origin alone") {
  const auto file = slow::make_file(slow::photo(40, 40, 3, 11), {});
  auto first = std::make_unique<mr::detail::jpeg_plane_decoder>();
  CHECK(first->decode({.bytes = file}).refusal == mr::jpeg_refusal::none);
  mr::detail::jpeg_plane_decoder moved = std::move(*first);
  first.reset();   // AddressSanitizer detects any access to it
  CHECK(slow::difference_of(moved.decode({.bytes = file}).planes, slow::raw_reader().read(file, 40)) == "");
}

TEST_CASE("a size outside of libjpeg's scaling is refused") {
  const auto file = slow::make_file(slow::photo(16, 16, 3, 7), {});
  mr::detail::jpeg_plane_decoder decoder;
  for (const int eighths : {-8, 0, 3, 5, 6, 7, 9, 16})
    CHECK(decoder.decode({.bytes = file, .eighths = eighths}).refusal == mr::jpeg_refusal::scaled);
}
