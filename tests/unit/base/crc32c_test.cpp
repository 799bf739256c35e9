#include <millrace/base/crc32c.hpp>
#include <millrace/base/random.hpp>

#include <doctest/doctest.h>

#include <string_view>
#include <vector>

namespace mr = millrace;

namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

/// Bit by bit, by definition.
std::uint32_t slow_crc32c(std::span<const std::byte> data) {
  std::uint32_t state = ~0U;
  for (const std::byte b : data) {
    state ^= std::to_integer<std::uint32_t>(b);
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? 0x82f63b78U : 0U);
  }
  return ~state;
}

}  // namespace

TEST_CASE("crc32c returns the published check values") {
  CHECK(mr::crc32c({}) == 0);
  CHECK(mr::crc32c(bytes_of("123456789")) == 0xe3069283U);
  // RFC 3720, section B.4
  std::vector<std::byte> data(32, std::byte{0});
  CHECK(mr::crc32c(data) == 0x8a9136aaU);
  data.assign(32, std::byte{0xff});
  CHECK(mr::crc32c(data) == 0x62a8ab43U);
  for (std::size_t i = 0; i < 32; ++i) data[i] = std::byte(i);
  CHECK(mr::crc32c(data) == 0x46dd794eU);
  for (std::size_t i = 0; i < 32; ++i) data[i] = std::byte(31 - i);
  CHECK(mr::crc32c(data) == 0x113fdb5cU);
}

TEST_CASE("tables and instruction agree with the definition for every length, start and cut") {
  mr::rng random({.seed = 5});
  std::vector<std::byte> data(200);
  for (auto& b : data) b = std::byte(random.below(256));
  for (std::size_t start = 0; start < 9; ++start)
    for (std::size_t size = 0; start + size <= data.size(); ++size) {
      const auto part = std::span<const std::byte>(data).subspan(start, size);
      const std::uint32_t expected = slow_crc32c(part);
      REQUIRE(mr::crc32c(part) == expected);
      REQUIRE(~mr::detail::crc32c_by_tables(part, ~0U) == expected);
      const std::size_t cut = size / 3;
      REQUIRE(mr::crc32c(part.subspan(cut), mr::crc32c(part.first(cut))) == expected);
    }
}

TEST_CASE("long runs, which use three lanes, agree with the definition") {
  mr::rng random({.seed = 6});
  std::vector<std::byte> data(100'000);
  for (auto& b : data) b = std::byte(random.below(256));
  for (const std::size_t lanes : {std::size_t{3 * 64}, std::size_t{3 * 256}, std::size_t{3 * 4096}})
    for (const std::size_t count : {1, 2, 3})
      for (const int more : {-9, -8, -1, 0, 1, 7, 8, 777}) {
        const std::size_t size = lanes * count + static_cast<std::size_t>(more);
        const auto part = std::span<const std::byte>(data).subspan(random.below(20), size);
        const std::uint32_t expected = slow_crc32c(part);
        CAPTURE(size);
        CHECK(mr::crc32c(part) == expected);
        CHECK(~mr::detail::crc32c_by_tables(part, ~0U) == expected);
        const std::size_t cut = random.below(size);
        CHECK(mr::crc32c(part.subspan(cut), mr::crc32c(part.first(cut))) == expected);
      }
}
