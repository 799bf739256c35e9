// Defines what tail_source.hpp declares.
#pragma once

#include <millrace/io/tar/read/tail_source.hpp>

#include <millrace/io/tar/format/tar_header.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE tail_source::tail_source(std::unique_ptr<byte_source> source, std::uint64_t offset_bytes)
    : source_(std::move(source)), base_bytes_(offset_bytes - tar_block_bytes) {
  append_tar_header(front_, ".start", 0);
}

MILLRACE_INLINE std::size_t tail_source::read_at(std::uint64_t offset_bytes, std::span<std::byte> buffer) {
  if (offset_bytes >= front_.size()) return source_->read_at(base_bytes_ + offset_bytes, buffer);
  const std::size_t count = std::min(buffer.size(), front_.size() - static_cast<std::size_t>(offset_bytes));
  std::memcpy(buffer.data(), front_.data() + offset_bytes, count);
  return count;
}

MILLRACE_INLINE std::size_t tail_source::read_parts(std::uint64_t offset_bytes,
                                                    std::span<const std::span<std::byte>> parts) {
  return offset_bytes >= front_.size() ? source_->read_parts(base_bytes_ + offset_bytes, parts)
                                       : byte_source::read_parts(offset_bytes, parts);
}

MILLRACE_INLINE std::size_t borrowed_byte_source::read_at(std::uint64_t offset_bytes, std::span<std::byte> buffer) {
  const std::uint64_t left = end_bytes_ - std::min(end_bytes_, offset_bytes);
  return left == 0 ? 0 : source_->read_at(offset_bytes, buffer.first(static_cast<std::size_t>(
                             std::min<std::uint64_t>(left, buffer.size()))));
}

}}}  // namespace millrace::detail
