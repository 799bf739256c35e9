// A file that reports the time of its reads to a read_meter, so that a run can report how long it waited for storage.
//
//   auto source = std::make_unique<mr::detail::metered_file>(mr::storage(), "train-000.tar", meter);
//
// The meter counts the opening of the file as a read of 0 bytes, because on a network file system, opening a file is as
// slow as reading it.
// Errors: the errors of the storage. Threads: one thread at a time. Lifetime: the meter must outlive the file.
#pragma once

#include <millrace/io/file/storage.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/measure/meters/read_meter.hpp>

#include <memory>
#include <span>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A file that reports each read to a read_meter.
class metered_file final : public byte_source {
 public:
  /// Opens the file. Throws io_error if it cannot be opened.
  metered_file(const storage& at, const std::string& name, read_meter& meter);

  /// Returns the name.
  std::string_view name() const noexcept override { return file_->name(); }
  /// Reads, and reports the time and the bytes to the meter.
  std::size_t read_at(std::uint64_t offset_bytes, std::span<std::byte> buffer) override;
  /// Works like read_at(), but fills several parts in order.
  std::size_t read_parts(std::uint64_t offset_bytes, std::span<const std::span<std::byte>> parts) override;
  /// Returns whether the file's read_parts() fills many parts at the cost of one read.
  bool reads_parts() const noexcept override { return file_->reads_parts(); }
  /// Announces the next reads to the file.
  void will_read(std::span<const byte_range> ranges) override { file_->will_read(ranges); }
  /// Sets the meter that receives the reports of later reads. Must not be called during a read.
  void set_meter(read_meter& meter) noexcept { meter_ = &meter; }
  /// Returns the underlying file. The meter receives no report of reads that the caller requests from this file
  /// directly.
  byte_source& file() noexcept { return *file_; }

 private:
  read_meter* meter_;
  owner<byte_source> file_;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/file/impl/metered_file.inl>
#endif
