// Prevents the compiler from fusing a product with the sum that uses it.
//
//   const double sum = mr::detail::unfused(a * b) + c;   // two roundings, with every compiler and flag
//
// A compiler may turn a * b + c into one fused multiply-add, which rounds once. Pillow rounds the product and then the
// sum.
// Errors: none. Threads: pure functions; any thread.
#pragma once

#include <millrace/base/version.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns `value`. The compiler cannot optimize across this call.
inline double unfused(double value) noexcept {
#if defined __x86_64__
  asm("" : "+x"(value));
#elif defined __aarch64__
  asm("" : "+w"(value));
#else
  asm("" : "+m"(value));
#endif
  return value;
}

}}}   // namespace millrace::detail
