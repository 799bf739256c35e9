#include <millrace/base/digest.hpp>

#include <doctest/doctest.h>

#include <set>
#include <utility>
#include <vector>

namespace mr = millrace;

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
