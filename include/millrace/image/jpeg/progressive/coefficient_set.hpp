// Represents a set of a block's coefficients as one word, with the operations that refinement scans use.
//
//   using sets = mr::detail::portable_sets;                             // or deposit_sets, with the same results
//   mr::detail::coefficient_set zeros = mr::detail::band_of(1, 63);     // coefficients 1 to 63
//   auto place = sets::nth_last(zeros, 58);                             // the set of coefficient 5 alone
//   unsigned k = mr::detail::first_of(place);                           // 5
//   auto third = sets::spread(0b10, mr::detail::before(zeros, place));  // the set of coefficient 3 alone
//
// Bit 63 - k represents coefficient k, so that coefficients have the same order as bits of the stream.
// Threads: pure functions; any thread.
#pragma once

#include <millrace/base/version.hpp>

#include <bit>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

using coefficient_set = std::uint64_t;

constexpr coefficient_set set_of(unsigned k) noexcept { return coefficient_set{1} << 63 >> k; }
/// Returns the number of the first coefficient; 64 for an empty set.
MILLRACE_ALWAYS_INLINE inline unsigned first_of(coefficient_set set) noexcept {
  return static_cast<unsigned>(std::countl_zero(set));
}
MILLRACE_ALWAYS_INLINE inline unsigned size_of(coefficient_set set) noexcept {
  return static_cast<unsigned>(std::popcount(set));
}
/// Returns the members of `set` before the only coefficient in `place`.
constexpr coefficient_set before(coefficient_set set, coefficient_set place) noexcept {
  return set & (coefficient_set{0} - (place << 1));
}
/// Returns the coefficients from `first` to `last`.
constexpr coefficient_set band_of(unsigned first, unsigned last) noexcept {
  return ~coefficient_set{0} >> first & ~coefficient_set{0} << (63 - last);
}

struct portable_sets {
  /// Returns the set that contains only the n-th member from the end, counted from 0. The set must have more than n
  /// members.
  MILLRACE_ALWAYS_INLINE static coefficient_set nth_last(coefficient_set set, unsigned n) noexcept {
    for (; n > 0; --n) set &= set - 1;
    return set & (coefficient_set{0} - set);
  }
  /// Returns the members whose bit in `bits` is 1. `bits` has one bit per member; the lowest bit belongs to the last
  /// member.
  MILLRACE_ALWAYS_INLINE static coefficient_set spread(std::uint64_t bits, coefficient_set set) noexcept {
    coefficient_set result = 0;
    for (; set != 0; set &= set - 1, bits >>= 1)
      if ((bits & 1) != 0) result |= set & (coefficient_set{0} - set);
    return result;
  }
};

#if defined __x86_64__ || defined __aarch64__
/// Sets with an instruction that deposits bits: PDEP of BMI2, or BDEP of SVE2.
struct deposit_sets {
  MILLRACE_ALWAYS_INLINE static coefficient_set nth_last(coefficient_set set, unsigned n) noexcept {
    return deposit(std::uint64_t{1} << n, set);
  }
  MILLRACE_ALWAYS_INLINE static coefficient_set spread(std::uint64_t bits, coefficient_set set) noexcept {
    return deposit(bits, set);
  }

 private:
  /// Uses inline assembly, because an intrinsic would require a compiler flag. BDEP exists only for vectors.
  MILLRACE_ALWAYS_INLINE static std::uint64_t deposit(std::uint64_t bits, std::uint64_t to) noexcept {
    std::uint64_t result;
#ifdef __x86_64__
    asm("pdep %2, %1, %0" : "=r"(result) : "r"(bits), "r"(to));
#else
    asm(".arch_extension sve2-bitperm\n\tfmov d0, %1\n\tfmov d1, %2\n\tbdep z0.d, z0.d, z1.d\n\tfmov %0, d0"
        : "=r"(result)
        : "r"(bits), "r"(to)
        : "v0", "v1");
#endif
    return result;
  }
};
#endif

}}}   // namespace millrace::detail
