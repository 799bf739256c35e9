// Definitions for byte_source.hpp.
#pragma once

#include <millrace/io/file/byte_source.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::size_t read_fully(byte_source& source, std::uint64_t offset_bytes, std::span<std::byte> buffer) {
  std::size_t filled = 0;
  while (filled < buffer.size()) {
    const std::size_t got = source.read_at(offset_bytes + filled, buffer.subspan(filled));
    if (got == 0) break;
    filled += got;
  }
  return filled;
}

MILLRACE_INLINE std::size_t read_fully(byte_source& source, std::uint64_t offset_bytes,
                                       std::span<std::span<std::byte>> parts) {
  std::size_t filled = 0;
  while (!parts.empty()) {
    std::size_t got = source.read_parts(offset_bytes + filled, parts);
    if (got == 0) break;
    filled += got;
    for (; !parts.empty() && got >= parts.front().size(); parts = parts.subspan(1)) got -= parts.front().size();
    if (got > 0) parts.front() = parts.front().subspan(got);
  }
  return filled;
}

}   // namespace detail

}}   // namespace millrace
