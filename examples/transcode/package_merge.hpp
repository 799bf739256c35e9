// Computes the word lengths of an optimal prefix code with limited word lengths, by package-merge.
//
//   const std::vector<std::uint64_t> weights{5, 1, 1, 9};                    // frequency of each symbol
//   const std::vector<std::uint8_t> longest{3, 3, 3, 3};                     // for each symbol, in bits
//   std::vector<std::uint8_t> lengths(weights.size());
//   transcode::package_merge(weights, longest, lengths);                     // {2, 3, 3, 1}; of 2 bits: {2, 2, 2, 2}
//
// Every symbol gets a word, also one of weight 0. The sum of weight times length is the minimum within the limits. The
// sum of 2^-length is exactly 1. If several codes are optimal, the result is still a function of the weights: of two
// symbols with equal weights and limits, the word of the later one is longer or equally long.
// Errors: none. There are at least two symbols. The sum of 2^-longest is at most 1. Limits are 1 to 16, and never
// greater for a heavier symbol than for a lighter one. The sum of the weights is below 2^59.
// Threads: pure.
// Source: Larmore and Hirschberg, "A fast algorithm for optimal length-limited Huffman codes", 1990.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace transcode {

/// Writes the length of each symbol's word into `lengths`. All three spans have the same size.
/// A level is a word length; levels begin with the longest. The list of a level contains the symbols that may have
/// words of this length, and the pairs of the previous list, in ascending order of weights. Only the positions of
/// symbols are stored of each list, because the symbols in any prefix of it are the lightest ones.
inline void package_merge(std::span<const std::uint64_t> weights, std::span<const std::uint8_t> longest,
                          std::span<std::uint8_t> lengths) {
  std::vector<std::size_t> lightest(weights.size());
  std::iota(lightest.begin(), lightest.end(), std::size_t{0});
  std::sort(lightest.begin(), lightest.end(), [&](std::size_t a, std::size_t b) {
    if (weights[a] != weights[b]) return weights[a] < weights[b];
    return longest[a] != longest[b] ? longest[a] > longest[b] : a > b;
  });

  std::vector<std::vector<bool>> levels;
  std::vector<std::uint64_t> list, merged;
  for (unsigned length = *std::max_element(longest.begin(), longest.end()); length > 0; --length) {
    auto& is_symbol = levels.emplace_back();
    const auto end = std::find_if(lightest.begin(), lightest.end(), [&](auto s) { return longest[s] < length; });
    const auto symbols = static_cast<std::size_t>(end - lightest.begin()), pairs = list.size() / 2;
    merged.clear();
    for (std::size_t symbol = 0, pair = 0; symbol < symbols || pair < pairs;) {
      const auto weight_of_pair = [&] { return list[2 * pair] + list[2 * pair + 1]; };
      const bool takes_symbol = pair == pairs || (symbol < symbols && weights[lightest[symbol]] <= weight_of_pair());
      merged.push_back(takes_symbol ? weights[lightest[symbol]] : weight_of_pair());
      ++(takes_symbol ? symbol : pair);
      is_symbol.push_back(takes_symbol);
    }
    list.swap(merged);
  }

  std::fill(lengths.begin(), lengths.end(), std::uint8_t{0});
  std::size_t selected = 2 * weights.size() - 2;
  for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
    const auto end = level->begin() + static_cast<std::ptrdiff_t>(selected);
    const auto symbols = static_cast<std::size_t>(std::count(level->begin(), end, true));
    for (std::size_t i = 0; i < symbols; ++i) ++lengths[lightest[i]];
    selected = 2 * (selected - symbols);
  }
}

}   // namespace transcode
