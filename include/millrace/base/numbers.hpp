// Classifies numbers by their bits, on the host and in kernels. This also works in programs built with -ffast-math.
//
//   if (!mr::detail::is_finite(loss)) ++nonfinite;
//   if (mr::detail::is_nan(logit)) ++nans;
//
// Errors: none. Threads: the functions are pure; any thread may call them. Format: IEEE 754.
#pragma once

#include <millrace/base/version.hpp>

#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Uses the built-in instead of std::bit_cast, because kernels cannot call functions of the standard library.
MILLRACE_BOTH_SIDES constexpr bool is_nan(float value) noexcept {
  return (__builtin_bit_cast(std::uint32_t, value) & 0x7fffffffU) > 0x7f800000U;
}

MILLRACE_BOTH_SIDES constexpr bool is_finite(double value) noexcept {
  return (__builtin_bit_cast(std::uint64_t, value) & 0x7ff0000000000000U) != 0x7ff0000000000000U;
}

}}}   // namespace millrace::detail
