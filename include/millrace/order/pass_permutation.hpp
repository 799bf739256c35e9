// A uniform permutation of the samples of one pass. It is the order if the shuffle window covers the data set.
//
//   const mr::detail::pass_permutation order({.seed = 7, .pass = 2, .length = 40});
//   order[17];                                    // the index before the shuffle of the sample with ordinal 17
//
// Method: Fisher-Yates with counter-based random numbers of (seed, pass).
// Cost: 4 bytes for each sample, or 8 bytes for 2^32 samples or more. The construction needs 2 ns per sample if these
// bytes fit in the cache, and up to 20 ns otherwise. A lookup reads one element.
// Errors: std::bad_alloc. Threads: immutable.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The order of one pass, as a table.
class pass_permutation {
 public:
  struct options {
    std::uint64_t seed = 0;
    std::uint64_t pass = 0;
    std::uint64_t length = 0;   ///< number of samples of the pass
  };

  pass_permutation() = default;
  explicit pass_permutation(const options& o);

  /// Returns the index before the shuffle of the sample with this ordinal (number in the order, below the length).
  std::uint64_t operator[](std::uint64_t ordinal) const noexcept {
    return wide_.empty() ? narrow_[ordinal] : wide_[ordinal];
  }

 private:
  static constexpr std::uint64_t permutation_stream = ~std::uint64_t{4};   // distinct from the streams of the stages

  std::vector<std::uint32_t> narrow_;
  std::vector<std::uint64_t> wide_;   // used for 2^32 samples or more
};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/order/impl/pass_permutation.inl>
#endif
