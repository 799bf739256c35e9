#include <millrace/base/crc32c.hpp>
#include <millrace/base/digest.hpp>
#include <millrace/base/random.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace mr = millrace;

namespace {

/// The definition, bit by bit.
std::uint32_t slow_crc(std::span<const std::byte> data, std::uint32_t polynomial) {
  std::uint32_t state = ~0U;
  for (const std::byte byte : data) {
    state ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? polynomial : 0U);
  }
  return ~state;
}
std::uint32_t slow_crc32(std::span<const std::byte> data) { return slow_crc(data, 0xedb88320U); }
std::uint32_t slow_crc32c(std::span<const std::byte> data) { return slow_crc(data, 0x82f63b78U); }

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

TEST_CASE("one changed bit, or another length, changes the digest") {
  std::vector<std::byte> data(37);
  std::set<std::uint64_t> digests{mr::detail::digest_bytes(data)};
  for (std::size_t bit = 0; bit < data.size() * 8; ++bit) {
    data[bit / 8] ^= std::byte(1 << (bit % 8));
    digests.insert(mr::detail::digest_bytes(data));
    data[bit / 8] ^= std::byte(1 << (bit % 8));
  }
  for (std::size_t n = 0; n < 37; ++n) digests.insert(mr::detail::digest_bytes(std::span(data).first(n)));
  CHECK(digests.size() == 1 + 37 * 8 + 37);
}

TEST_CASE("a stream digest does not depend on the order of adding, on the thread or on interruptions") {
  mr::detail::stream_digest forward, backward;
  for (std::uint64_t i = 0; i < 60; ++i) forward.add(i, i * i);
  for (std::uint64_t i = 60; i-- > 0;) backward.add(i, i * i);
  CHECK(forward.value() == backward.value());
  for (const std::uint64_t adders : {2U, 3U, 12U}) {
    mr::detail::stream_digest sum(forward.value());
    for (std::uint64_t a = 0; a < adders; ++a) {
      mr::detail::stream_digest part;
      for (std::uint64_t i = 60 + a; i < 120; i += adders) part.add(i, i * i);
      sum.add(part);
    }
    for (std::uint64_t i = 60; i < 120; ++i) backward.add(i, i * i);
    CHECK(sum.value() == backward.value());
    backward = forward;
  }
  CHECK(mr::detail::stream_digest().value() == 0);
}

TEST_CASE("reordered, changed, lost and repeated pairs change a stream digest") {
  using pairs = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  pairs all;
  for (std::uint64_t i = 0; i < 60; ++i) all.emplace_back(i, 7 * i % 11);
  std::set<std::uint64_t> sums;
  std::size_t changes = 0;
  const auto record_change = [&](const pairs& changed) {
    mr::detail::stream_digest sum;
    for (const auto& [position, digest] : changed) sum.add(position, digest);
    sums.insert(sum.value());
    ++changes;
  };
  record_change(all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    pairs changed = all;
    for (std::size_t j = 0; j < i; ++j) {
      if (all[i].second == all[j].second) continue;
      std::swap(changed[i].second, changed[j].second);
      record_change(changed);
      changed = all;
    }
    changed[i].second ^= 1;
    record_change(changed);
    changed = all;
    changed.push_back(all[i]);
    record_change(changed);
    changed = all;
    changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(i));
    record_change(changed);
  }
  CHECK(sums.size() == changes);
}

// A change of this value makes saved resume points invalid.
TEST_CASE("the stream digest is pinned") {
  mr::detail::stream_digest sum;
  for (std::uint64_t i = 0; i < 60; ++i) sum.add(i, i * i);
  CHECK(sum.value() == 17286344230046113849U);
}
