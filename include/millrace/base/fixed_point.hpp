// Computes roots, powers, logarithms, sines and cosines with integers, and draws random fixed-point numbers.
//
//   const std::int64_t bits = mr::detail::fixed_log2(std::uint64_t{3} << 32);   // log2(3), with 32 fraction bits
//   const std::uint64_t three = mr::detail::fixed_exp2(bits);                   // 3 again, except for rounding
//   const double cosine = mr::detail::cosine_of(0.25);                          // of an angle in radians
//
// The functions produce the same bits on every machine. Therefore random choices that use these functions are also the
// same on every machine.
// Errors: none. Threads: pure functions; only one thread at a time may use an rng.
#pragma once

#include <millrace/base/random.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

__extension__ using unsigned_128 = unsigned __int128;
__extension__ using signed_128 = __int128;

/// Returns the square root, rounded down.
constexpr std::uint64_t integer_sqrt(unsigned_128 value) noexcept {
  std::uint64_t root = 0;
  const auto high = static_cast<std::uint64_t>(value >> 64);
  const int width = high != 0 ? 64 + static_cast<int>(std::bit_width(high))
                              : static_cast<int>(std::bit_width(static_cast<std::uint64_t>(value)));
  for (int bit = (width - 1) / 2; bit >= 0; --bit) {
    const std::uint64_t next = root | std::uint64_t{1} << bit;
    if (unsigned_128{next} * next <= value) root = next;
  }
  return root;
}

/// 2^(2^-k) for k = 1..32 with 62 fraction bits. Each value is the square root of the previous one.
inline constexpr std::array<std::uint64_t, 32> exp2_steps = [] {
  std::array<std::uint64_t, 32> steps{};
  std::uint64_t value = std::uint64_t{2} << 62;
  for (auto& step : steps) step = value = integer_sqrt(unsigned_128{value} << 62);
  return steps;
}();

/// Returns 2^x for -33 < x < 16. Both x and the result have 32 fraction bits.
constexpr std::uint64_t fixed_exp2(std::int64_t x) noexcept {
  const auto integer = static_cast<int>(x >> 32);
  std::uint64_t value = std::uint64_t{1} << 62;
  for (int k = 0; k < 32; ++k)
    if ((x >> (31 - k)) & 1)
      value = static_cast<std::uint64_t>(unsigned_128{value} * exp2_steps[static_cast<std::size_t>(k)] >> 62);
  return value >> (30 - integer);
}

/// Returns log2(x / 2^32) with 32 fraction bits, for x > 0.
constexpr std::int64_t fixed_log2(std::uint64_t x) noexcept {
  const int exponent = static_cast<int>(std::bit_width(x)) - 1;
  std::uint64_t mantissa = exponent >= 62 ? x >> (exponent - 62) : x << (62 - exponent);   // [1, 2), 62 fraction bits
  std::int64_t result = exponent - 32;
  for (int k = 0; k < 32; ++k) {
    unsigned_128 square = unsigned_128{mantissa} * mantissa >> 62;
    const bool carries = square >> 63 != 0;
    mantissa = static_cast<std::uint64_t>(carries ? square >> 1 : square);
    result = result * 2 + (carries ? 1 : 0);
  }
  return result;
}

/// Converts to 32 fraction bits, rounding to nearest.
constexpr std::uint64_t to_fixed(double value) noexcept { return static_cast<std::uint64_t>(value * 0x1p32 + 0.5); }

/// Draws a uniformly distributed fixed-point number in [low, high].
constexpr std::int64_t fixed_between(rng& random, std::int64_t low, std::int64_t high) noexcept {
  return low + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(high - low) + 1));
}

/// Draws -log2(U) with 32 fraction bits, where U is uniform in (0, 1].
constexpr std::uint64_t fixed_exponential(rng& random) noexcept {
  const std::uint64_t u = random.bits();   // represents (u + 1) / 2^64
  return u == ~std::uint64_t{0} ? 0 : static_cast<std::uint64_t>((std::int64_t{32} << 32) - fixed_log2(u + 1));
}

/// Draws a number of the standard normal distribution, with 32 fraction bits, by the polar method of Marsaglia.
constexpr std::int64_t fixed_normal(rng& random) noexcept {
  constexpr std::uint64_t twice_ln_2 = 0x162e42fef;   // with 32 fraction bits
  for (;;) {
    const std::int64_t x = fixed_between(random, -(std::int64_t{1} << 31), std::int64_t{1} << 31);
    const std::int64_t y = fixed_between(random, -(std::int64_t{1} << 31), std::int64_t{1} << 31);
    const auto square = static_cast<std::uint64_t>(x * x) + static_cast<std::uint64_t>(y * y);   // 62 fraction bits
    if (square == 0 || square >= std::uint64_t{1} << 62) continue;
    const auto log = static_cast<std::uint64_t>((std::int64_t{30} << 32) - fixed_log2(square));   // -log2, 32 bits
    const auto doubled = unsigned_128{log} * twice_ln_2;                                          // -2 ln, 64 bits
    const auto root = static_cast<std::int64_t>(integer_sqrt(doubled));
    const auto radius = static_cast<std::int64_t>(integer_sqrt(square));
    return static_cast<std::int64_t>(signed_128{x} * root / radius);   // root and the quotient have 32 fraction bits
  }
}

struct sine_and_cosine {
  std::int64_t sine = 0, cosine = 0;   // 61 fraction bits, error below 2^-56
};

/// Returns the sine and the cosine of an angle between 0 and pi / 4, with 61 fraction bits, by power series.
constexpr sine_and_cosine small_sine(std::int64_t angle) noexcept {
  const auto product = [](std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(signed_128{a} * b >> 61);
  };
  sine_and_cosine sum{.sine = 0, .cosine = 0};
  std::int64_t term = std::int64_t{1} << 61;
  for (int n = 0; n < 20; ++n) {
    const bool odd = n % 2 != 0, negative = n % 4 >= 2;
    (odd ? sum.sine : sum.cosine) += negative ? -term : term;
    term = product(term, angle) / (n + 1);
  }
  return sum;
}

/// Returns the sine and the cosine of an angle in [0, 8) radians, with an error below 2^-53.
constexpr std::array<double, 2> sine_and_cosine_of(double radians) noexcept {
  constexpr std::uint64_t right_angle = 0x3243f6a8885a308d;   // pi / 2 with 61 fraction bits
  auto rest = static_cast<std::uint64_t>(radians * 0x1p61);
  int quarters = 0;
  for (; rest > right_angle; rest -= right_angle) ++quarters;
  const bool mirrored = rest > right_angle / 2;
  const sine_and_cosine parts = small_sine(static_cast<std::int64_t>(mirrored ? right_angle - rest : rest));
  const double first = static_cast<double>(mirrored ? parts.cosine : parts.sine) * 0x1p-61;
  const double second = static_cast<double>(mirrored ? parts.sine : parts.cosine) * 0x1p-61;
  const bool swapped = quarters % 2 != 0;
  const double sine = swapped ? second : first, cosine = swapped ? first : second;
  return {quarters % 4 >= 2 ? -sine : sine, quarters % 4 == 1 || quarters % 4 == 2 ? -cosine : cosine};
}

constexpr double sine_of(double radians) noexcept { return sine_and_cosine_of(radians)[0]; }
constexpr double cosine_of(double radians) noexcept { return sine_and_cosine_of(radians)[1]; }

}}}   // namespace millrace::detail

#include <millrace/simd/precise_end.inc>
