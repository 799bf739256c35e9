// Copies pixels of three bytes to pixels of four bytes. The fourth byte is 255.
//
//   if (!mr::detail::copy_rgb_to_rgbx(row, 500, memory)) copy_one_by_one();   // false: this CPU has no fast code
//
// Up to 16 bytes may be read beyond `from` and written beyond `to`. Errors: none. Threads: pure functions; any thread.
#pragma once

#include <millrace/simd/cpu_features.hpp>
#include <millrace/simd/words.hpp>

#include <cstddef>
#include <cstdint>

#define MILLRACE_KERNELS <millrace/image/png/rgb_to_rgbx_body.inc>
#include <millrace/simd/for_each_layer.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns false without copying if this CPU has no fast code.
inline bool copy_rgb_to_rgbx([[maybe_unused]] const std::uint8_t* from, [[maybe_unused]] std::size_t count,
                             [[maybe_unused]] std::uint8_t* to) noexcept {
#if defined __x86_64__ || defined __aarch64__
  if (cpu_has_word_layer()) {
    word_layer::copy_rgb_to_rgbx(from, count, to);
    return true;
  }
#endif
  return false;
}

}}}   // namespace millrace::detail
