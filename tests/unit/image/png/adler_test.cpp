#include <millrace/base/random.hpp>
#include <millrace/image/png/adler.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace mr = millrace;

namespace {

/// The definition, byte by byte.
std::uint32_t slow_adler(std::span<const std::uint8_t> data) {
  std::uint32_t first = 1, second = 0;
  for (const std::uint8_t byte : data) {
    first = (first + byte) % 65'521;
    second = (second + first) % 65'521;
  }
  return second << 16 | first;
}

}  // namespace

TEST_CASE("Adler-32 equals its definition, for every length, address and cut") {
  mr::rng d({.seed = 12});
  std::vector<std::uint8_t> bytes(40'000);
  for (auto& b : bytes) b = d.chance(0.5) ? 255 : static_cast<std::uint8_t>(d.below(256));
  for (std::size_t i = 0; i < 700; ++i) {
    const std::size_t at = d.below(40), size = i < 600 ? i : d.below(bytes.size() - at), cut = d.below(size + 1);
    const auto part = std::span<const std::uint8_t>(bytes).subspan(at, size);
    const std::uint32_t expected = slow_adler(part);
    CAPTURE(size);
    REQUIRE(mr::detail::adler(part) == expected);
    REQUIRE(mr::detail::adler(part.subspan(cut), mr::detail::adler(part.first(cut))) == expected);
  }
}

TEST_CASE("Adler-32 of the largest bytes does not overflow") {
  const std::vector<std::uint8_t> bytes(30'000, 255);
  CHECK(mr::detail::adler(bytes) == slow_adler(bytes));
}
