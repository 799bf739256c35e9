// Definitions for metered_file.hpp.
#pragma once

#include <millrace/io/file/metered_file.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE metered_file::metered_file(const storage& at, const std::string& name, read_meter& meter)
    : meter_(&meter) {
  const read_meter::running opening(meter, name);
  file_ = open_file(at, name);
}

MILLRACE_INLINE std::size_t metered_file::read_at(std::uint64_t offset_bytes, std::span<std::byte> buffer) {
  read_meter::running read(*meter_, file_->name());
  return read.record_bytes(file_->read_at(offset_bytes, buffer));
}

MILLRACE_INLINE std::size_t metered_file::read_parts(std::uint64_t offset_bytes,
                                                     std::span<const std::span<std::byte>> parts) {
  read_meter::running read(*meter_, file_->name());
  return read.record_bytes(file_->read_parts(offset_bytes, parts));
}

}}}   // namespace millrace::detail
