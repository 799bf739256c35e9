#include <millrace/base/crc32.hpp>
#include <millrace/base/random.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace mr = millrace;

namespace {

/// The definition, bit by bit.
std::uint32_t slow_crc32(std::span<const std::byte> data) {
  std::uint32_t state = ~0U;
  for (const std::byte byte : data) {
    state ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? 0xedb88320U : 0U);
  }
  return ~state;
}

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace

TEST_CASE("CRC-32 of known texts") {
  CHECK(mr::detail::crc32(bytes_of("123456789")) == 0xcbf43926U);   // the check value of the catalogs
  CHECK(mr::detail::crc32(bytes_of("IEND")) == 0xae426082U);        // the final chunk of every PNG
  CHECK(mr::detail::crc32({}) == 0);
}

TEST_CASE("CRC-32 is the same bit by bit, by tables, by instructions, and in parts, at any address") {
  mr::rng random({.seed = 3});
  std::vector<std::byte> data(40'000);
  for (auto& b : data) b = std::byte(random.below(256));
  const auto check = [](std::span<const std::byte> part) {
    const std::uint32_t expected = slow_crc32(part);
    REQUIRE(mr::detail::crc32(part) == expected);
    REQUIRE(~mr::detail::crc32_by_tables(part, ~0U) == expected);
    const std::size_t cut = part.size() / 3;
    REQUIRE(mr::detail::crc32(part.subspan(cut), mr::detail::crc32(part.first(cut))) == expected);
  };
  for (std::size_t size = 0; size < 700; ++size) check(std::span<const std::byte>(data).subspan(size % 17, size));
  check(data);
}
