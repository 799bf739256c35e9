// Counter-based randomness: the same (seed, epoch, sample, stage) gives the same numbers on every thread and machine.
//
//   example prepare(const mr::record& r, mr::rng& rng) {
//     const bool mirrored = rng.chance(0.5);     // true with probability 0.5
//     const auto angle = rng.between(-15, 15);   // integer, both ends included
//     const auto gain = rng.uniform(0.8, 1.2);   // double in [0.8, 1.2)
//     return varied(r, mirrored, angle, gain);
//   }
//
// Lifetime: an rng belongs to the one call that receives it. It holds 8 bytes, shares no state and allocates nothing.
// Errors: none. Threads: one at a time for each rng.
// Source: SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014), with the
// finalizer "Mix13" of David Stafford; bounded integers after Lemire (ACM TOMACS 2019), without bias.
#pragma once

#include <millrace/base/version.hpp>

#include <cstdint>

#include <millrace/base/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// Returns a hash of `x`: a bijection of 64 bits in which every input bit affects every output bit.
constexpr std::uint64_t mix_bits(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// Returns one key from two: for building keys such as (seed, epoch, sample, stage) step by step.
constexpr std::uint64_t combine_keys(std::uint64_t key, std::uint64_t next) noexcept {
  return mix_bits(key + 0x9e3779b97f4a7c15U * (next + 1));
}

}  // namespace detail

/// The random stream of one sample in one stage.
class rng {
 public:
  /// Holds everything that a stream depends on: never a thread, a worker, a rank or the time.
  struct key {
    std::uint64_t seed = 0;
    std::uint64_t epoch = 0;
    /// Identity of the sample in the data set, not its position in the epoch. mix_rows alone draws by a position, that
    /// of a pair's first row.
    std::uint64_t sample = 0;
    std::uint64_t stage = 0;    ///< ordinal among the stages that use random numbers
  };

  explicit constexpr rng(key k) noexcept
      : state_(detail::combine_keys(detail::combine_keys(detail::combine_keys(detail::combine_keys(0, k.seed),
                                                                              k.epoch), k.sample), k.stage)) {}

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

  /// Returns an integer in [low, high], both included; low <= high.
  constexpr std::int64_t between(std::int64_t low, std::int64_t high) noexcept {
    const auto span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
    const std::uint64_t step = span == ~std::uint64_t{0} ? bits() : below(span + 1);
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + step);
  }

  /// Returns a double in [0, 1), a multiple of 2^-53.
  constexpr double uniform() noexcept { return static_cast<double>(bits() >> 11) * 0x1p-53; }

  /// Returns a double in [low, high). One fused multiply-add: the same bits with every compiler and flag.
  double uniform(double low, double high) noexcept {
    return __builtin_fma(uniform(), high - low, low);   // std::fma, without the cost of including <cmath>
  }

  /// Returns true with the given probability.
  constexpr bool chance(double probability) noexcept { return uniform() < probability; }

 private:
  __extension__ typedef unsigned __int128 wide;

  std::uint64_t state_;
};

}}  // namespace millrace

#include <millrace/base/precise_end.inc>
