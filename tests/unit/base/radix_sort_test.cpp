// radix_sort against std::stable_sort.
#include <millrace/base/radix_sort.hpp>
#include <millrace/base/random.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace mr = millrace;

namespace {

struct item {
  std::uint64_t key = 0;
  std::size_t number = 0;
  friend bool operator==(const item&, const item&) = default;
};

}  // namespace

TEST_CASE("items are sorted by their keys, and the order of equal keys is stable") {
  // Bytes that all keys share are below, between and above those that differ.
  for (const std::uint64_t differing : {std::uint64_t{0}, std::uint64_t{3}, std::uint64_t{0xff}, std::uint64_t{0x1fff},
                                        std::uint64_t{0xf00001fff}, std::uint64_t{0xff} << 56, ~std::uint64_t{0}})
    for (const std::size_t count : {0, 1, 2, 3, 16, 255, 257, 4096}) {
      CAPTURE(differing);
      CAPTURE(count);
      std::vector<item> items;
      for (std::size_t i = 0; i < count; ++i)
        items.push_back({(mr::detail::combine_keys(differing, i) & differing) | (0x5a5a5a5a5a5a5a5aU & ~differing), i});
      std::vector<item> expected = items;
      std::stable_sort(expected.begin(), expected.end(), [](const item& a, const item& b) { return a.key < b.key; });
      mr::detail::radix_sort(items, [](const item& one) { return one.key; });
      CHECK(items == expected);
    }
}
