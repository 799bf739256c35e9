// Finds the word lengths of an optimal prefix code whose words have at most given lengths: package-merge.
//
//   const std::vector<std::uint64_t> weights{5, 1, 1, 9};                    // how often each symbol comes
//   const std::vector<std::uint8_t> longest{3, 3, 3, 3};                     // for each symbol, in bits
//   std::vector<std::uint8_t> lengths(weights.size());
//   mr::detail::package_merge(weights, longest, lengths);                    // {2, 3, 3, 1}; of 2 bits: {2, 2, 2, 2}
//
// Every symbol gets a word, also one of weight 0. The sum of weight times length is the least that the limits allow.
// The sum of 2^-length is exactly 1. Where several codes are optimal, the same weights always give the same one: of two
// symbols with equal weights and limits the later one has the longer word, or one as long.
// Errors: none. There are at least two symbols. The sum of 2^-longest is at most 1. Limits are 1 to 16, and a heavier
// symbol's is no greater than a lighter one's. The weights' sum is below 2^59.
// Threads: pure. Source: Larmore and Hirschberg, "A fast algorithm for optimal length-limited Huffman codes", 1990.
#pragma once

#include <millrace/base/version.hpp>

#include <cstdint>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Writes the length of each symbol's word into `lengths`. All three are as long.
void package_merge(std::span<const std::uint64_t> weights, std::span<const std::uint8_t> longest,
                   std::span<std::uint8_t> lengths);

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/image/jpeg/coding/impl/package_merge.inl>
#endif
