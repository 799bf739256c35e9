#include <millrace/image/jpeg/jpeg_header.hpp>
#include <millrace/image/jpeg/progressive/progressive_decoder.hpp>

#include "../../jpeg_recipes.hpp"
#include "../../random_jpegs.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <set>

namespace mr = millrace;
using mr::detail::jpeg_planes_request, mr::jpeg_refusal, mr::detail::progressive_decoder;
using slow::count_of, slow::damaged, slow::draw_progressive_file, slow::random_jpeg, slow::seed_of_run;

namespace {

/// A request for bytes in a block of exactly their size, so that AddressSanitizer detects any read beyond it.
struct exact_request {
  std::unique_ptr<std::byte[]> memory;
  jpeg_planes_request request;

  exact_request(std::span<const std::byte> file, jpeg_planes_request r)
      : memory(new std::byte[file.size()]), request(r) {
    if (!file.empty()) std::memcpy(memory.get(), file.data(), file.size());
    request.bytes = {memory.get(), file.size()};
  }
};

jpeg_planes_request random_request(mr::rng& d, const random_jpeg& f) {
  jpeg_planes_request request;
  request.eighths = d.chance(0.6) ? 8 : 1 << d.below(3);
  if (d.chance(0.3)) return request;
  const auto scale = static_cast<std::size_t>(request.eighths);
  const std::size_t width = (f.width * scale + 7) / 8, height = (f.height * scale + 7) / 8;
  request.left = d.below(width);
  request.top = d.below(height);
  request.right = request.left + 1 + d.below(width - request.left);
  request.bottom = request.top + 1 + d.below(height - request.top);
  return request;
}

std::string refusal_of(std::span<const std::byte> file) {
  return refusal_name(progressive_decoder().decode({.bytes = file}).refusal);
}

/// The markers of a file, with the data after them.
struct marked_part {
  unsigned marker;
  std::vector<std::byte> bytes;
};

std::vector<marked_part> parts_of(const std::vector<std::byte>& file) {
  std::vector<marked_part> parts;
  const auto byte = [&](std::size_t i) { return std::to_integer<unsigned>(file[i]); };
  for (std::size_t at = 0; at < file.size();) {
    const unsigned marker = byte(at + 1);
    std::size_t end = at + 2;
    if (marker != 0xd8 && marker != 0xd9) end += byte(at + 2) << 8 | byte(at + 3);
    if (marker == 0xda)
      while (end + 1 < file.size() && (byte(end) != 0xff || byte(end + 1) == 0 || byte(end + 1) / 8 == 0xd0 / 8)) ++end;
    parts.push_back({marker, {file.begin() + static_cast<std::ptrdiff_t>(at),
                              file.begin() + static_cast<std::ptrdiff_t>(end)}});
    at = end;
  }
  return parts;
}

std::vector<std::byte> joined(const std::vector<marked_part>& parts) {
  std::vector<std::byte> file;
  for (const auto& p : parts) file.insert(file.end(), p.bytes.begin(), p.bytes.end());
  return file;
}

/// The offset of scan `n`, counted from the end if it is negative.
std::size_t scan_at(const std::vector<marked_part>& parts, int n) {
  std::vector<std::size_t> scans;
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (parts[i].marker == 0xda) scans.push_back(i);
  return scans[static_cast<std::size_t>(n < 0 ? std::ssize(scans) + n : n)];
}

}  // namespace

TEST_CASE("planes of progressive files are those of libjpeg, by every processor's code, whatever the scans") {
  mr::rng d({.seed = seed_of_run(), .sample = 51});
  progressive_decoder best, portable(progressive_decoder::code::portable);
  const std::size_t files = count_of("MILLRACE_TEST_PICTURES", 1'500);
  std::set<std::array<int, 3>> layouts;        // sampling, eighths, restart markers
  std::set<std::array<int, 4>> kinds;          // DC or AC, refinement, its place, components
  std::set<std::pair<int, int>> bands;
  for (std::size_t i = 0; i < files; ++i) {
    const random_jpeg f = draw_progressive_file(d, d.chance(0.03) ? 400 : 64);
    exact_request x(f.bytes, random_request(d, f));
    x.request.max_scans = 1'000;
    INFO(describe_scans(f));
    CAPTURE(x.request.eighths);
    const auto expected = slow::raw_reader().read(f.bytes, f.height, x.request.eighths);
    CHECK(expected.warnings == 0);
    CHECK(mr::refusal_of_header(f.bytes) == jpeg_refusal::none);
    for (auto* decoder : {&best, &portable}) {
      const auto got = decoder->decode(x.request);
      CHECK(std::string(refusal_name(got.refusal)) == "none");
      if (!got) continue;
      CHECK(slow::covers(got.planes, x.request));
      CHECK(slow::difference_of(got.planes, expected) == "");
    }
    const int luma = f.channels == 1 ? 0 : 10 * f.recipe.horizontal + f.recipe.vertical;
    layouts.insert({luma, x.request.eighths, f.recipe.restart_interval != 0});
    for (const auto& scan : f.recipe.scans) {
      kinds.insert({scan.Ss > 0, scan.Ah > 0, scan.Al, scan.comps_in_scan});
      bands.insert({scan.Ss, scan.Se});
    }
  }
  if (files < 1'500) return;
  CHECK(layouts.size() == 5 * 4 * 2);
  CHECK(kinds.size() >= 70);
  CHECK(bands.size() > 600);
}

TEST_CASE("damaged progressive files are refused, or have the planes of libjpeg without a warning") {
  mr::rng d({.seed = seed_of_run(), .sample = 52});
  progressive_decoder best, portable(progressive_decoder::code::portable);
  const std::size_t files = count_of("MILLRACE_TEST_DAMAGED", 3'000);
  std::size_t refused = 0, accepted = 0, unlike = 0;
  for (std::size_t i = 0; i < files; ++i) {
    random_jpeg f = draw_progressive_file(d, 48);
    const auto original = f.bytes;
    const auto request = random_request(d, f);
    f.bytes = damaged(f.bytes, d);
    const exact_request x(f.bytes, request);
    const auto got = best.decode(x.request);
    CHECK(portable.decode(x.request).refusal == got.refusal);
    if (!got) {
      ++refused;
      continue;
    }
    const auto expected = slow::raw_reader().read(
        f.bytes, std::min<std::size_t>(request.bottom, static_cast<std::size_t>(got.planes.image_height)),
        request.eighths);
    INFO(describe_scans(f));
    CHECK(!expected.error);
    CHECK(expected.warnings == 0);
    CHECK(slow::difference_of(got.planes, expected) == "");
    ++accepted;
    unlike += f.bytes != original;
  }
  CHECK(refused > files / 3);
  CHECK(accepted > files / 50);
  CHECK(unlike > files / 60);
}

TEST_CASE("each kind of progressive file that is left to libjpeg has its reason") {
  const auto pixels = slow::photo(40, 40, 3, 8);
  const auto file = slow::make_file(pixels, {.progressive = true});
  const auto parts = parts_of(file);
  CHECK(joined(parts) == file);
  CHECK(refusal_of(file) == "none");
  CHECK(refusal_of({}) == "not a JPEG");
  CHECK(refusal_of(slow::make_file(pixels, {})) == "arithmetic or lossless");
  CHECK(refusal_of(slow::make_jpeg(pixels, {.progressive = true, .arithmetic = true})) == "arithmetic or lossless");
  CHECK(refusal_of(slow::make_file(pixels, {.horizontal = 4, .vertical = 1, .progressive = true})) == "sampling");
  CHECK(refusal_of(slow::make_jpeg(pixels, {.stored = JCS_RGB, .progressive = true})) == "color space");
  const auto changed = [&](const auto& change) {
    auto p = parts;
    change(p);
    return joined(p);
  };
  // Each scan is needed, for its coefficients or as the base of another one.
  for (int n = 0; n < 10; ++n) {
    const auto without = changed([n](auto& p) { p.erase(p.begin() + static_cast<std::ptrdiff_t>(scan_at(p, n))); });
    CHECK(refusal_of(without) != "none");
    CHECK(mr::refusal_of_header(without) != jpeg_refusal::none);
  }
  const auto last_left_out = changed([](auto& p) { p.erase(p.begin() + static_cast<std::ptrdiff_t>(scan_at(p, -1))); });
  CHECK(refusal_of(last_left_out) == "progressive, scans omitted");
  CHECK(mr::refusal_of_header(last_left_out) == jpeg_refusal::unrefined);
  // A scan twice: its coefficients have already been sent.
  for (int n = 0; n < 10; ++n)
    CHECK(refusal_of(changed([n](auto& p) {
            const auto at = static_cast<std::ptrdiff_t>(scan_at(p, n));
            p.insert(p.begin() + at, marked_part(p[static_cast<std::size_t>(at)]));
          })) == "unusual header");
  CHECK(refusal_of(changed([](auto& p) { p.pop_back(); })) == "damaged");                       // no end
  CHECK(refusal_of(changed([](auto& p) { p[scan_at(p, 3)].bytes.pop_back(); })) == "damaged");   // short data
  CHECK(refusal_of(changed([](auto& p) { p[scan_at(p, 3)].bytes.push_back(std::byte{0}); })) == "damaged");
  CHECK(refusal_of(changed([](auto& p) {
          std::erase_if(p, [](const marked_part& m) { return m.marker == 0xdb; });
        })) == "tables");
  CHECK(refusal_of(changed([](auto& p) {
          std::erase_if(p, [](const marked_part& m) { return m.marker == 0xc4; });
        })) == "tables");
  // Fields of a scan's header: 40 bytes of the second scan, which is of Y, coefficients 1 to 5.
  const auto with = [&](std::size_t offset, unsigned value) {
    return refusal_of(changed([&](auto& p) { p[scan_at(p, 1)].bytes[offset] = static_cast<std::byte>(value); }));
  };
  CHECK(with(4, 2) != "none");
  CHECK(with(5, 77) == "unusual header");    // no such component
  CHECK(with(6, 0x44) == "unusual header");  // tables 4
  CHECK(with(7, 0) == "unusual header");     // DC and AC in one scan
  CHECK(with(7, 6) == "unusual header");
  CHECK(with(8, 64) == "unusual header");
  CHECK(with(9, 0x0e) == "unusual header");
  CHECK(with(9, 0x31) == "unusual header");
}

TEST_CASE("the quantizers of a component are those at the beginning of its first scan") {
  const auto pixels = slow::photo(40, 40, 3, 12);
  auto parts = parts_of(slow::make_file(pixels, {.quality = 60, .progressive = true}));
  marked_part other{0xdb, std::vector<std::byte>(69, std::byte{1})};
  other.bytes[0] = std::byte{0xff};
  other.bytes[1] = std::byte{0xdb};
  other.bytes[2] = other.bytes[4] = std::byte{0};
  other.bytes[3] = std::byte{67};
  parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(scan_at(parts, 4)), other);
  const auto file = joined(parts);
  progressive_decoder decoder;
  const auto got = decoder.decode({.bytes = file});
  REQUIRE(got);
  CHECK(slow::difference_of(got.planes, slow::raw_reader().read(file, 40)) == "");
}

TEST_CASE("limits are those of the request, and a header that declares too much costs no memory") {
  const auto file = slow::make_file(slow::photo(64, 64, 3, 5), {.progressive = true});
  progressive_decoder decoder;
  const auto with = [&](int scans, std::size_t bytes) {
    return decoder.decode({.bytes = file, .max_scans = scans, .max_memory_bytes = bytes}).refusal;
  };
  CHECK(with(10, 8 << 20) == jpeg_refusal::none);
  CHECK(with(9, 8 << 20) == jpeg_refusal::limits);
  CHECK(with(10, 1 << 20) == jpeg_refusal::limits);
  for (const int eighths : {-8, 0, 3, 5, 7, 9, 16})
    CHECK(decoder.decode({.bytes = file, .eighths = eighths}).refusal == jpeg_refusal::scaled);
  auto large = file;
  for (std::size_t i = 0; i + 9 < large.size(); ++i)
    if (large[i] == std::byte{0xff} && large[i + 1] == std::byte{0xc2}) {
      large[i + 5] = large[i + 7] = std::byte{0xf0};   // more than 61,000 by 61,000
      break;
    }
  CHECK(decoder.decode({.bytes = large, .max_memory_bytes = ~std::size_t{0}}).refusal == jpeg_refusal::damaged);
}

TEST_CASE("an image that was refused in the middle changes nothing in the next ones, larger or smaller") {
  mr::rng d({.seed = seed_of_run(), .sample = 53});
  progressive_decoder decoder;
  const auto large = slow::make_file(slow::photo(200, 200, 3, 9), {.quality = 95, .progressive = true});
  for (int i = 0; i < 60; ++i) {
    auto cut = large;
    cut.resize(cut.size() - 1 - d.below(cut.size() / 2));
    CHECK(!decoder.decode({.bytes = cut}));
    const auto f = draw_progressive_file(d, i % 10 == 0 ? 300 : 64);
    const auto got = decoder.decode({.bytes = f.bytes});
    CHECK(slow::difference_of(got.planes, slow::raw_reader().read(f.bytes, f.height)) == "");
  }
}

TEST_CASE("wild values are refused, and only those") {
  for (const int more : {100, 400, 1'100, 1'800}) {
    const auto file = slow::make_jpeg(slow::photo(16, 16, 1, 3),
                                      {.stored = JCS_GRAYSCALE, .quality = 100, .progressive = true,
                                       .more_in_coefficient = more});
    const auto expected = slow::raw_reader().read(file, 16);
    progressive_decoder decoder;
    const auto got = decoder.decode({.bytes = file});
    CAPTURE(more);
    if (more < 1'000) CHECK(slow::difference_of(got.planes, expected) == "");
    else CHECK(!got);
  }
}
