// Weighted sums of images, byte by byte. The portable implementation.
//
//   const mr::detail::mixed_bytes parts[2] = {{first, 10'000}, {second, 6'384}};   // weights sum to 16384
//   mr::detail::portable_mixing::run(parts, count, out);
//
// Each sum is divided by 16384, and truncated to an integer. `out` may be one of the parts. Errors: none. Threads: any
// thread, if no two calls share `out`.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

struct mixed_bytes {
  const std::uint8_t* data = nullptr;
  std::int32_t weight = 0;   ///< 0 to 16384
};

struct portable_mixing {
  static void run(std::span<const mixed_bytes> parts, std::size_t count, std::uint8_t* out,
                  std::size_t begin = 0) noexcept {
    for (std::size_t i = begin; i < count; ++i) {
      std::int32_t sum = 0;
      for (const mixed_bytes& part : parts) sum += part.weight * part.data[i];
      out[i] = static_cast<std::uint8_t>(sum >> 14);
    }
  }
};

}}}   // namespace millrace::detail
