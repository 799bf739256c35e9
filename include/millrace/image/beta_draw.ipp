// Defines what beta_draw.hpp declares.
#pragma once

#include <millrace/image/beta_draw.hpp>

#include <millrace/base/error.hpp>
#include <millrace/base/fixed_point.hpp>

#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::uint64_t beta_draw(rng& random, double alpha) {
  if (!(alpha >= 1.0 / 1024 && alpha <= 1024))
    throw setup_error("alpha of a beta distribution is wrong: got " + std::to_string(alpha) +
                          ", expected a number of 1/1024 to 1024",
                      "Give the alpha of MixUp or CutMix, such as 0.8 or 1");
  constexpr std::uint64_t one = std::uint64_t{1} << 32;
  const std::uint64_t fixed_alpha = to_fixed(alpha);
  if (fixed_alpha == one) return random.bits() >> 32;
  // Negative binary logarithms, with 32 fraction bits.
  const auto power = [](std::uint64_t log) {
    return log < std::uint64_t{32} << 32 ? fixed_exp2(-static_cast<std::int64_t>(log)) : 0;
  };
  if (fixed_alpha < one)
    for (;;) {
      const auto root = [&] {
        return static_cast<std::uint64_t>((unsigned_128{fixed_exponential(random)} << 32) / fixed_alpha);
      };
      const std::uint64_t x = root(), y = root();
      if (power(x) + power(y) > one) continue;
      // x / (x + y), where the larger of both is taken for 1.
      const std::uint64_t smaller = power(x > y ? x - y : y - x);
      const unsigned_128 own = x > y ? smaller : one, sum = one + smaller;
      return static_cast<std::uint64_t>(((own << 32) + sum / 2) / sum);
    }
  for (;;) {
    const std::uint64_t x = random.bits() >> 32 | 1, limit = fixed_exponential(random);   // x is never 0
    const std::int64_t height = (std::int64_t{2} << 32) + fixed_log2(x) + fixed_log2(one - x);   // log2(4 x (1 - x))
    const auto below = static_cast<std::uint64_t>(height < 0 ? -height : 0);
    if (limit >= unsigned_128{fixed_alpha - one} * below >> 32) return x;
  }
}

}}}  // namespace millrace::detail
