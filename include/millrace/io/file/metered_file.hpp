// A file whose reads are timed by a read_meter, so that a run knows how long it waited for storage.
//
//   auto source = std::make_unique<mr::detail::metered_file>("train-000.tar", meter);    // measure/read_meter.hpp
//
// Opening the file counts as a read of 0 bytes: on a network file system it takes as long as a read.
// Errors and threads: those of file_source. Lifetime: the meter outlives the file.
#pragma once

#include <millrace/io/file/byte_source.hpp>
#include <millrace/measure/read_meter.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A file_source that reports each read to a read_meter.
class metered_file final : public byte_source {
 public:
  /// Opens the file. Throws io_error if it cannot be opened.
  metered_file(const std::string& path, read_meter& meter) : meter_(&meter), file_(opened(path, meter)) {}

  /// Returns the path.
  std::string_view name() const noexcept override { return file_.name(); }
  /// Reads as file_source::read_at() does, and reports the time and the bytes to the meter.
  std::size_t read_at(std::uint64_t offset_bytes, std::span<std::byte> room) override {
    read_meter::running read(*meter_, file_.name());
    return read.brought(file_.read_at(offset_bytes, room));
  }
  /// Reports further reads to `meter`. Must not be called during a read.
  void watch_in(read_meter& meter) noexcept { meter_ = &meter; }

 private:
  static file_source opened(const std::string& path, read_meter& meter) {
    const read_meter::running read(meter, path);
    return file_source(path);
  }

  read_meter* meter_;
  file_source file_;
};

}}}  // namespace millrace::detail
