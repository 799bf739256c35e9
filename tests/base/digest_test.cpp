#include <millrace/base/digest.hpp>

#include <doctest/doctest.h>

#include <set>
#include <vector>

namespace mr = millrace;

TEST_CASE("one changed bit, or another length, changes the digest") {
  std::vector<std::byte> data(37);
  std::set<std::uint64_t> seen{mr::digest_bytes(data)};
  for (std::size_t bit = 0; bit < data.size() * 8; ++bit) {
    data[bit / 8] ^= std::byte(1 << (bit % 8));
    seen.insert(mr::digest_bytes(data));
    data[bit / 8] ^= std::byte(1 << (bit % 8));
  }
  for (std::size_t n = 0; n < 37; ++n) seen.insert(mr::digest_bytes(std::span(data).first(n)));
  CHECK(seen.size() == 1 + 37 * 8 + 37);
}

TEST_CASE("a stream digest does not depend on the order of adding, but on the positions") {
  mr::stream_digest forward, backward, swapped;
  for (std::uint64_t i = 0; i < 9; ++i) forward.add(i, i * i);
  for (std::uint64_t i = 9; i-- > 0;) backward.add(i, i * i);
  for (std::uint64_t i = 0; i < 9; ++i) swapped.add(i, i < 2 ? (1 - i) : i * i);
  CHECK(forward.value() == backward.value());
  CHECK(forward.value() != swapped.value());
}
