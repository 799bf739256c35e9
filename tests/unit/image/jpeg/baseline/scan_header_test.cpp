#include <millrace/image/jpeg/baseline/scan_header.hpp>
#include <millrace/image/jpeg/baseline/unstuffer.hpp>
#include <millrace/image/jpeg/jpeg_encoder.hpp>

#include "../../jpeg_recipes.hpp"
#include "../../slow_planes.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace mr = millrace;
namespace detail = millrace::detail;

namespace {

std::string refusal_of(const std::vector<std::byte>& file) {
  detail::scan_header header;
  return refusal_name(detail::read_scan_header(file, header));
}

/// The begin of the payload of the first segment with that marker.
std::size_t payload_of(const std::vector<std::byte>& file, unsigned marker) {
  for (std::size_t i = 2; i + 3 < file.size();) {
    if (std::to_integer<unsigned>(file[i + 1]) == marker) return i + 4;
    i += 2 + (std::to_integer<std::size_t>(file[i + 2]) << 8 | std::to_integer<std::size_t>(file[i + 3]));
  }
  return 0;
}

std::vector<std::byte> with(std::vector<std::byte> file, unsigned marker, std::size_t offset, unsigned value) {
  const std::size_t at = payload_of(file, marker);
  REQUIRE(at > 0);
  file[at + offset] = static_cast<std::byte>(value);
  return file;
}

}  // namespace

TEST_CASE("a header contains the settings of libjpeg") {
  const auto file = slow::make_file(slow::photo(37, 53, 3, 1), {.horizontal = 2, .vertical = 1, .restart_interval = 5});
  detail::scan_header h;
  CHECK(detail::read_scan_header(file, h) == mr::jpeg_refusal::none);
  CHECK(h.width == 53);
  CHECK(h.height == 37);
  CHECK(h.components == 3);
  CHECK(h.component[0].horizontal == 2);
  CHECK(h.component[0].vertical == 1);
  CHECK(h.component[1].horizontal == 1);
  CHECK(h.restart_interval == 5);
  CHECK(h.data_offset_bytes == payload_of(file, 0xda) + 10);
  CHECK(h.component[0].quantiser != h.component[1].quantiser);
  CHECK(h.component[1].quantiser == h.component[2].quantiser);
}

TEST_CASE("each kind of file that is left to libjpeg has its reason") {
  const auto color = slow::make_file(slow::photo(20, 20, 3, 2), {});
  CHECK(refusal_of(color) == "none");
  CHECK(refusal_of({}) == "not a JPEG");
  CHECK(refusal_of(std::vector<std::byte>(100)) == "not a JPEG");
  CHECK(refusal_of(slow::make_file(slow::photo(20, 20, 3, 2), {.progressive = true})) == "progressive");
  CHECK(refusal_of(slow::make_file(slow::photo(20, 20, 3, 2), {.horizontal = 4, .vertical = 1})) == "sampling");
  CHECK(refusal_of(mr::encode_jpeg(slow::photo(20, 20, 3, 2), {.keep_rgb = true})) == "color space");
  CHECK(refusal_of(slow::make_jpeg(slow::photo(20, 20, 3, 2), {.arithmetic = true})) == "arithmetic or lossless");
  CHECK(refusal_of(with(color, 0xc0, 0, 12)) == "precision");
  CHECK(refusal_of(with(color, 0xc0, 2, 0)) != "none");          // 20 rows become 0
  CHECK(refusal_of(with(color, 0xc0, 5, 4)) == "components");
  CHECK(refusal_of(with(color, 0xc0, 9, 1)) == "unusual header");   // two components of one name
  CHECK(refusal_of(with(color, 0xc0, 8, 9)) == "unusual header");
  CHECK(refusal_of(with(color, 0xc0, 8, 3)) == "tables");        // a quantiser that was never sent
  CHECK(refusal_of(with(color, 0xdb, 0, 0x10)) == "precision");
  CHECK(refusal_of(with(color, 0xc4, 0, 0x20)) == "tables");
  CHECK(refusal_of(with(color, 0xda, 0, 1)) == "several scans");
  CHECK(refusal_of(with(color, 0xda, 2, 0x33)) == "tables");
  CHECK(refusal_of(with(color, 0xda, 8, 62)) == "unusual header");
  CHECK(refusal_of(with(color, 0xe0, 5, 2)) == "unusual header");   // JFIF 2
  // Every length that ends within the header.
  for (std::size_t n = 0; n < payload_of(color, 0xda) + 10; ++n)
    CHECK(refusal_of({color.begin(), color.begin() + static_cast<std::ptrdiff_t>(n)}) == "not a JPEG");
}

TEST_CASE("stuffed zeros are removed as by going byte by byte") {
  mr::rng d({.seed = 41});
  detail::byte_memory memory;
  for (int i = 0; i < 500; ++i) {
    std::vector<std::uint8_t> file(d.below(i < 400 ? 90 : 30'000)), expected;
    for (auto& byte : file) byte = d.chance(0.15) ? 0xff : d.chance(0.15) ? 0 : static_cast<std::uint8_t>(d.below(256));
    for (std::size_t k = 0; k + 1 < file.size(); ++k)   // usually not a marker
      if (file[k] == 0xff && !d.chance(i % 3 == 0 ? 0.02 : 0)) file[++k] = 0;
    std::size_t at = 0;
    bool marker = false;
    while (at < file.size()) {
      if (file[at] != 0xff) {
        expected.push_back(file[at++]);
        continue;
      }
      if (at + 1 == file.size()) break;
      marker = file[at + 1] != 0 && file[at + 1] != 0xff;
      if (file[at + 1] != 0) break;
      expected.push_back(0xff);
      at += 2;
    }
    // In a heap block of exact size, for AddressSanitizer.
    const std::unique_ptr<std::uint8_t[]> exact(new std::uint8_t[file.size()]);
    std::copy(file.begin(), file.end(), exact.get());
    detail::unstuffer u;
    u.begin({exact.get(), file.size()}, 0, memory);
    const std::size_t step = d.below(5'000) + 1;
    for (std::size_t from = 0; !u.ended(); from += step) u.reach(u.begin_of_interval() + from, step);
    CHECK(std::vector<std::uint8_t>(u.begin_of_interval(), u.end()) == expected);
    CHECK(u.at_marker() == marker);
    if (marker && file[at + 1] == 0xd3) CHECK(u.next_interval(3));
    else CHECK(!u.next_interval(3));
  }
}
