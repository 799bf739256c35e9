#include <millrace/run/delivery_digest.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace mr = millrace;

namespace {

std::vector<mr::delivered_sample> some() {
  std::vector<mr::delivered_sample> all;
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch)
    for (std::uint64_t p = 0; p < 60; ++p) all.push_back({epoch, p, 100 + p, 7 * p % 11});
  return all;
}

std::uint64_t digest_of(const std::vector<mr::delivered_sample>& all, std::uint64_t from = 0) {
  mr::delivery_digest digest(from);
  for (const auto& d : all) digest.add(d);
  return digest.value();
}

}  // namespace

TEST_CASE("neither the order of adding counts nor who added, nor where the sum was interrupted") {
  const auto all = some();
  auto backwards = all;
  std::reverse(backwards.begin(), backwards.end());
  CHECK(digest_of(backwards) == digest_of(all));
  for (const std::size_t ranks : {2U, 3U, 12U}) {
    mr::delivery_digest whole;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      mr::delivery_digest part;
      for (std::size_t i = rank; i < all.size(); i += ranks) part.add(all[i]);
      CHECK(part.value() != digest_of(all));
      whole.add(part);
    }
    CHECK(whole.value() == digest_of(all));
  }
  const auto middle = all.begin() + 77;
  CHECK(digest_of({middle, all.end()}, digest_of({all.begin(), middle})) == digest_of(all));
  CHECK(digest_of({}) == 0);
}

TEST_CASE("two payloads, or two samples, that change places change it, as does each that is lost or comes twice") {
  const auto all = some();
  std::set<std::uint64_t> seen{digest_of(all)};
  std::size_t changes = 0;
  const auto note = [&](const std::vector<mr::delivered_sample>& changed) {
    seen.insert(digest_of(changed));
    ++changes;
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      auto changed = all;
      if (all[i].payload != all[j].payload) {
        std::swap(changed[i].payload, changed[j].payload);
        note(changed);
        changed = all;
      }
      if (all[i].sample != all[j].sample) {
        std::swap(changed[i].sample, changed[j].sample);
        note(changed);
      }
    }
    auto changed = all;
    changed[i].payload ^= 1;
    note(changed);
    changed = all;
    changed[i].epoch += 1;
    note(changed);
    changed = all;
    changed.push_back(all[i]);
    note(changed);
    changed = all;
    changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(i));
    note(changed);
  }
  CHECK(seen.size() == changes + 1);
}

TEST_CASE("of several fields the order counts") {
  using mr::combine_payloads;
  CHECK(combine_payloads(combine_payloads(0, 1), 2) != combine_payloads(combine_payloads(0, 2), 1));
  CHECK(combine_payloads(combine_payloads(0, 0), 0) != combine_payloads(0, 0));
}

// Whoever changes this changes what resume points hold.
TEST_CASE("the digest is pinned") {
  CHECK(digest_of(some()) == 9141476745088093521U);
}
