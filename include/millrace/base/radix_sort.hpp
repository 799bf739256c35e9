// Sorts many small items by a 64-bit key, one byte of the key at a time.
//
//   std::vector<std::pair<std::uint64_t, int>> items = {{7, 0}, {3, 1}, {7, 2}};
//   mr::detail::radix_sort(items, [](const auto& item) { return item.first; });   // equal keys keep their order
//
// Use this function for thousands of items in random order. A byte of the key that is equal in all items costs almost
// no time.
// Memory: a second list of the same length. Errors: throws std::bad_alloc. Threads: any thread may call the function;
// calls share no state.
// Source: Knuth, The Art of Computer Programming, volume 3, section 5.2.5.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Sorts `items` by `key_of(item)`, a std::uint64_t. Items with equal keys keep their order.
template <class Item, class Key>
void radix_sort(std::vector<Item>& items, const Key& key_of) {
  constexpr std::size_t digits = 256;
  std::uint64_t differing = 0;
  for (const Item& item : items) differing |= key_of(item) ^ key_of(items.front());
  std::vector<Item> sorted(items.size());
  for (int shift = 0; shift < 64; shift += 8) {
    const auto digit = [&](std::uint64_t key) { return static_cast<std::size_t>(key >> shift) % digits; };
    if (digit(differing) == 0) continue;
    std::size_t places[digits + 1] = {};
    for (const Item& item : items) ++places[digit(key_of(item)) + 1];
    for (std::size_t d = 1; d < digits; ++d) places[d] += places[d - 1];
    for (const Item& item : items) sorted[places[digit(key_of(item))]++] = item;
    items.swap(sorted);
  }
}

}}}   // namespace millrace::detail
