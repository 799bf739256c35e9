// Defines what package_merge.hpp declares.
#pragma once

#include <millrace/image/coding/package_merge.hpp>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A level's list holds all symbols, and the pairs of the list below it, in ascending order of their weights. Which of
/// its places hold symbols is all that is kept of a list: the symbols in any part at its front are the lightest ones.
MILLRACE_INLINE void package_merge(std::span<const std::uint64_t> weights, unsigned longest,
                                   std::span<std::uint8_t> lengths) {
  std::vector<std::size_t> lightest(weights.size());
  std::iota(lightest.begin(), lightest.end(), std::size_t{0});
  std::sort(lightest.begin(), lightest.end(), [&](std::size_t a, std::size_t b) {
    return weights[a] != weights[b] ? weights[a] < weights[b] : a > b;
  });

  std::vector<std::vector<bool>> is_symbol(longest);
  std::vector<std::uint64_t> list, merged;
  for (auto& kinds : is_symbol) {
    merged.clear();
    const std::size_t pairs = list.size() / 2;
    for (std::size_t symbol = 0, pair = 0; symbol < weights.size() || pair < pairs;) {
      const auto weight_of_pair = [&] { return list[2 * pair] + list[2 * pair + 1]; };
      const bool takes_symbol =
          pair == pairs || (symbol < weights.size() && weights[lightest[symbol]] <= weight_of_pair());
      merged.push_back(takes_symbol ? weights[lightest[symbol]] : weight_of_pair());
      ++(takes_symbol ? symbol : pair);
      kinds.push_back(takes_symbol);
    }
    list.swap(merged);
  }

  std::fill(lengths.begin(), lengths.end(), std::uint8_t{0});
  std::size_t taken = 2 * weights.size() - 2;
  for (std::size_t level = longest; level-- > 0;) {
    const auto& kinds = is_symbol[level];
    const auto end = kinds.begin() + static_cast<std::ptrdiff_t>(taken);
    const auto symbols = static_cast<std::size_t>(std::count(kinds.begin(), end, true));
    for (std::size_t i = 0; i < symbols; ++i) ++lengths[lightest[i]];
    taken = 2 * (taken - symbols);
  }
}

}}}  // namespace millrace::detail
