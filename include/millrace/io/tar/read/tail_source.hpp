// Presents a shard from one of its members on, as if it began there.
//
//   auto tail = std::make_unique<mr::detail::tail_source>(std::move(source), sample_offset_bytes);
//   // reads: one empty member called ".start", then the shard from sample_offset_bytes on
//
// libarchive examines the first header of an archive more closely than the others. The empty member in front takes
// that place, so that a member from the middle of a shard is read as usual. The stream begins at `offset_bytes - 512`
// of the shard. The offset must therefore be that of a header, and not 0.
// Errors: those of the source. Threads: one at a time. Lifetime: the borrowed source outlives the borrowed_byte_source.
#pragma once

#include <millrace/io/file/byte_source.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A shard from an offset on.
class tail_source final : public byte_source {
 public:
  tail_source(std::unique_ptr<byte_source> source, std::uint64_t offset_bytes);

  std::string_view name() const noexcept override { return source_->name(); }

  std::size_t read_at(std::uint64_t offset_bytes, std::span<std::byte> buffer) override;
  std::size_t read_parts(std::uint64_t offset_bytes, std::span<const std::span<std::byte>> parts) override;
  bool reads_parts() const noexcept override { return source_->reads_parts(); }

 private:
  std::unique_ptr<byte_source> source_;
  std::uint64_t base_bytes_;
  std::string front_;
};

/// A source that forwards to one that it does not own, as if that one ended at `end_bytes` at the latest.
class borrowed_byte_source final : public byte_source {
 public:
  explicit borrowed_byte_source(byte_source& source, std::uint64_t end_bytes = ~std::uint64_t{0}) noexcept
      : source_(&source), end_bytes_(end_bytes) {}
  std::string_view name() const noexcept override { return source_->name(); }
  std::size_t read_at(std::uint64_t offset_bytes, std::span<std::byte> buffer) override;

 private:
  byte_source* source_;
  std::uint64_t end_bytes_;
};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/tar/read/impl/tail_source.inl>
#endif
