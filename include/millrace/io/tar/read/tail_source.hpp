// Presents the rest of a shard, starting at one of its members, as a complete shard.
//
//   auto tail = std::make_unique<mr::detail::tail_source>(std::move(source), sample_offset_bytes);
//   // delivers an empty member named ".start", followed by the shard from sample_offset_bytes on
//
// libarchive validates the first header of an archive more strictly than later headers. Therefore an empty member
// precedes the rest of the shard. `offset_bytes` must be the offset of a header, and must not be 0. Errors: the errors
// of the source. Threads: one thread at a time. Lifetime: the borrowed source must outlive the borrowed_byte_source.
#pragma once

#include <millrace/io/file/byte_source.hpp>
#include <millrace/io/tar/format/tar_header.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The rest of a shard, starting at an offset.
class tail_source final : public byte_source {
 public:
  tail_source(std::unique_ptr<byte_source> source, std::uint64_t offset_bytes)
      : source_(std::move(source)), base_bytes_(offset_bytes - tar_block_bytes) {
    append_tar_header(front_, ".start", 0);
  }

  std::string_view name() const noexcept override { return source_->name(); }

  std::size_t read_at(std::uint64_t offset_bytes, std::span<std::byte> buffer) override {
    if (offset_bytes >= front_.size()) return source_->read_at(base_bytes_ + offset_bytes, buffer);
    const std::size_t count = std::min(buffer.size(), front_.size() - static_cast<std::size_t>(offset_bytes));
    std::memcpy(buffer.data(), front_.data() + offset_bytes, count);
    return count;
  }
  std::size_t read_parts(std::uint64_t offset_bytes, std::span<const std::span<std::byte>> parts) override {
    return offset_bytes >= front_.size() ? source_->read_parts(base_bytes_ + offset_bytes, parts)
                                         : byte_source::read_parts(offset_bytes, parts);
  }
  bool reads_parts() const noexcept override { return source_->reads_parts(); }

 private:
  std::unique_ptr<byte_source> source_;
  std::uint64_t base_bytes_;
  std::string front_;
};

/// A view of a source. The view does not own the source, and ends at `end_bytes`.
class borrowed_byte_source final : public byte_source {
 public:
  explicit borrowed_byte_source(byte_source& source, std::uint64_t end_bytes = ~std::uint64_t{0}) noexcept
      : source_(&source), end_bytes_(end_bytes) {}
  std::string_view name() const noexcept override { return source_->name(); }
  std::size_t read_at(std::uint64_t offset_bytes, std::span<std::byte> buffer) override {
    const std::uint64_t left = end_bytes_ - std::min(end_bytes_, offset_bytes);
    return left == 0
               ? 0
               : source_->read_at(offset_bytes,
                                  buffer.first(static_cast<std::size_t>(std::min<std::uint64_t>(left, buffer.size()))));
  }

 private:
  byte_source* source_;
  std::uint64_t end_bytes_;
};

}}}   // namespace millrace::detail
