// A file whose reads are watched (measure/read_meter.hpp), so that a run knows what it waited for storage.
//
//   auto source = std::make_unique<mr::metered_file>("train-000.tar", meter);
//
// Opening it counts as a read of 0 bytes: on network file systems it takes as long as one. Otherwise as file_source.
// Lifetime: the meter outlives the file.
#pragma once

#include <millrace/io/file/byte_source.hpp>
#include <millrace/measure/read_meter.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

class metered_file final : public byte_source {
 public:
  metered_file(const std::string& path, read_meter& meter) : meter_(&meter), file_(opened(path, meter)) {}

  std::string_view name() const noexcept override { return file_.name(); }
  std::size_t read_at(std::uint64_t offset_bytes, std::span<std::byte> room) override {
    read_meter::running read(*meter_, file_.name());
    return read.brought(file_.read_at(offset_bytes, room));
  }
  /// From now on; not during a read.
  void watch_in(read_meter& meter) noexcept { meter_ = &meter; }

 private:
  static file_source opened(const std::string& path, read_meter& meter) {
    const read_meter::running read(meter, path);
    return file_source(path);
  }

  read_meter* meter_;
  file_source file_;
};

}}  // namespace millrace
