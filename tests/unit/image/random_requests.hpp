// Random requests to the built-in decoder, with bytes in separate memory.
#pragma once

#include "random_jpegs.hpp"

#include <cstring>
#include <memory>

namespace slow {

/// A request for bytes in a block of exactly their size, so that AddressSanitizer detects any read beyond it.
struct exact_request {
  std::unique_ptr<std::byte[]> memory;
  mr::detail::jpeg_planes_request request;

  exact_request(std::span<const std::byte> file, mr::detail::jpeg_planes_request a)
      : memory(new std::byte[file.size()]), request(a) {
    if (!file.empty()) std::memcpy(memory.get(), file.data(), file.size());
    request.bytes = {memory.get(), file.size()};
  }
};

inline mr::detail::jpeg_planes_request random_region(mr::rng& d, std::size_t width, std::size_t height) {
  mr::detail::jpeg_planes_request request;
  request.eighths = d.chance(0.5) ? 8 : 1 << d.below(3);
  if (d.chance(0.3)) return request;
  const auto scale = static_cast<std::size_t>(request.eighths);
  width = (width * scale + 7) / 8;
  height = (height * scale + 7) / 8;
  request.left = d.below(width);
  request.top = d.below(height);
  request.right = request.left + 1 + d.below(width - request.left);
  request.bottom = request.top + 1 + d.below(height - request.top);
  return request;
}
inline mr::detail::jpeg_planes_request random_region(mr::rng& d, const random_jpeg& f) {
  return random_region(d, f.width, f.height);
}

}  // namespace slow
