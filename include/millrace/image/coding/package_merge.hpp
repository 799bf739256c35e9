// Finds the word lengths of an optimal prefix code whose words have at most a given length: package-merge.
//
//   const std::vector<std::uint64_t> weights{5, 1, 1, 9};                    // how often each symbol comes
//   std::vector<std::uint8_t> lengths(weights.size());
//   mr::detail::package_merge(weights, 3, lengths);                          // {2, 3, 3, 1}; of 2 bits: {2, 2, 2, 2}
//
// Every symbol gets a word, also one of weight 0. The sum of weight times length is the least that the limit allows.
// The sum of 2^-length is exactly 1. Where several codes are optimal, the same weights always give the same one: of two
// symbols with equal weights the later one has the longer word, or one as long.
// Errors: none. There are 2 to 2^longest symbols, longest is at most 16, and the weights' sum is below 2^59.
// Threads: pure. Source: Larmore and Hirschberg, "A fast algorithm for optimal length-limited Huffman codes", 1990.
#pragma once

#include <millrace/base/version.hpp>

#include <cstdint>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Writes the length of each symbol's word into `lengths`, which is as long as `weights`.
void package_merge(std::span<const std::uint64_t> weights, unsigned longest, std::span<std::uint8_t> lengths);

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/image/coding/package_merge.ipp>
#endif
