// Generates random numbers from a key. The same key (seed, epoch, sample, stage) yields the same numbers on every
// thread and machine.
//
//   example prepare(const mr::record& r, mr::rng& rng) {
//     const bool mirrored = rng.chance(0.5);     // true with probability 0.5
//     const auto angle = rng.between(-15, 15);   // integer, both ends included
//     const auto gain = rng.uniform(0.8, 1.2);   // double in [0.8, 1.2)
//     return varied(r, mirrored, angle, gain);
//   }
//
//   | call | draws |
//   |---|---|
//   | bits(), rng() | 64 random bits, std::uint64_t |
//   | below(n) | an integer in [0, n) |
//   | between(low, high) | an integer in [low, high] |
//   | uniform() | a double in [0, 1) |
//   | uniform(low, high) | a double in [low, high) |
//   | normal(), normal(mean, deviation) | a double with a normal distribution |
//   | chance(p) | true with probability p |
//
// All of these functions produce the same bits with every compiler, flag and platform. The distributions of <random>
// also accept an rng, but their results differ between standard libraries.
//
// Lifetime: an rng is valid only during the call that receives it. An rng occupies 8 bytes, shares no state and does
// not allocate.
// Errors: none. Threads: only one thread at a time may use an rng.
// Source: SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014), with the
// finalizer "Mix13" of David Stafford; bounded integers after Lemire (ACM TOMACS 2019), without bias; normal numbers
// after Karney: Sampling Exactly from the Normal Distribution (ACM TOMS 42(1), 2016), algorithms N, H and B.
#pragma once

#include <millrace/base/version.hpp>

#include <cstdint>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// Returns a hash of `x`: a bijection of 64 bits in which every input bit affects every output bit.
constexpr std::uint64_t mix_bits(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// Combines two keys into one. Used to build keys such as (seed, epoch, sample, stage) step by step.
constexpr std::uint64_t combine_keys(std::uint64_t key, std::uint64_t next) noexcept {
  return mix_bits(key + 0x9e3779b97f4a7c15U * (next + 1));
}

}   // namespace detail

/// The random stream of one sample in one stage.
class rng {
 public:
  /// The values on which a stream depends. A stream never depends on a thread, a worker, a rank or the time.
  struct key {
    std::uint64_t seed = 0;
    std::uint64_t epoch = 0;
    /// The identity of the sample in the data set, not the position in the epoch. Exception: mix_rows (mixup, cutmix)
    /// draws once for two rows. In this case, the value is the position of the first row.
    std::uint64_t sample = 0;
    std::uint64_t stage = 0;   ///< number of the stage among the stages that use random numbers
  };

  explicit constexpr rng(key k) noexcept
      : state_(detail::combine_keys(
            detail::combine_keys(detail::combine_keys(detail::combine_keys(0, k.seed), k.epoch), k.sample), k.stage)) {}

  /// Required by the distributions of <random>.
  using result_type = std::uint64_t;
  static constexpr result_type min() noexcept { return 0; }
  static constexpr result_type max() noexcept { return ~result_type{0}; }
  constexpr result_type operator()() noexcept { return bits(); }

  /// Returns 64 random bits.
  constexpr std::uint64_t bits() noexcept { return detail::mix_bits(state_ += 0x9e3779b97f4a7c15U); }

  /// Returns an integer in [0, count). `count` is at least 1.
  constexpr std::uint64_t below(std::uint64_t count) noexcept {
    auto product = wide(bits()) * count;
    if (static_cast<std::uint64_t>(product) < count) {
      const std::uint64_t unfair = (0 - count) % count;
      while (static_cast<std::uint64_t>(product) < unfair) product = wide(bits()) * count;
    }
    return static_cast<std::uint64_t>(product >> 64);
  }

  /// Returns an integer in [low, high], both ends included. Requires low <= high.
  constexpr std::int64_t between(std::int64_t low, std::int64_t high) noexcept {
    const auto span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
    const std::uint64_t step = span == ~std::uint64_t{0} ? bits() : below(span + 1);
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + step);
  }

  /// Returns a double in [0, 1), a multiple of 2^-53.
  constexpr double uniform() noexcept { return static_cast<double>(bits() >> 11) * 0x1p-53; }

  /// Returns a double in [low, high). The computation is one fused multiply-add, so every compiler and flag produces
  /// the same bits.
  double uniform(double low, double high) noexcept {
    return __builtin_fma(uniform(), high - low, low);   // std::fma, without the cost of including <cmath>
  }

  /// Returns a number from the normal distribution with mean 0 and deviation 1. The number is a multiple of 2^-53,
  /// rounded to a double. The computation uses only integers and a variable number of draws, and requires about 0.1 us.
  constexpr double normal() noexcept {
    for (;;) {
      std::uint64_t integer = 0;
      while (half_exponential()) ++integer;
      bool good = true;
      for (std::uint64_t i = 0; good && integer > 0 && i < integer * (integer - 1); ++i) good = half_exponential();
      if (!good) continue;
      const std::uint64_t fraction = bits();
      for (std::uint64_t i = 0; good && i <= integer; ++i) good = accepts(integer, fraction);
      if (!good) continue;
      const double size = static_cast<double>((integer << 53) + (fraction >> 11)) * 0x1p-53;
      return (bits() >> 63) != 0 ? -size : size;
    }
  }

  /// Returns a number from the normal distribution. One fused multiply-add scales and shifts the result of normal().
  double normal(double mean, double deviation) noexcept { return __builtin_fma(normal(), deviation, mean); }

  /// Returns true with the given probability.
  constexpr bool chance(double probability) noexcept { return uniform() < probability; }

 private:
  __extension__ typedef unsigned __int128 wide;

  /// Returns true with probability exp(-1/2), by algorithm H.
  constexpr bool half_exponential() noexcept {
    std::uint64_t last = bits();
    if (last >> 63 != 0) return true;
    for (;;) {
      const std::uint64_t next = bits();
      if (next >= last) return false;
      last = bits();
      if (last >= next) return true;
    }
  }
  /// Returns true with probability exp(-f (2 k + f) / (2 k + 2)), by algorithm B. f is the fraction x / 2^64.
  constexpr bool accepts(std::uint64_t k, std::uint64_t x) noexcept {
    std::uint64_t last = x;
    for (bool even = true;; even = !even) {
      const std::uint64_t next = bits();
      if (next >= last) return even;
      const std::uint64_t part = below(2 * k + 2);   // 0: end; 1: continue with probability f; 2 or more: continue
      if (part == 0 || (part == 1 && bits() >= x)) return even;
      last = next;
    }
  }

  std::uint64_t state_;
};

}}   // namespace millrace

#include <millrace/simd/precise_end.inc>
