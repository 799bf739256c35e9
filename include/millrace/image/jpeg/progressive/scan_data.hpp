// Copies the restart intervals of one scan's data, one complete interval at a time, without the zero that a JPEG
// inserts after each 0xff.
//
//   mr::detail::scan_data data;
//   data.begin(file, scan.data_offset_bytes, memory);       // memory: a byte_memory, which may grow
//   std::uintptr_t bit = data.begin_bit();                   // bits up to data.end_bit() belong to the interval
//   if (!data.next_interval(bit)) return damaged;            // `bit` is the position of the decoder
//   if (!data.ends_at(bit)) return damaged;                  // the scan's end
//   std::size_t marker = data.end_offset();                  // in the file
//
// Units: positions are bit addresses, 8 * address + bit. Threads: one thread at a time. Source: ITU-T T.81 B.1.1.5 and
// B.2.1.
#pragma once

#include <millrace/image/jpeg/baseline/unstuffer.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

class scan_data {
 public:
  void begin(std::span<const std::uint8_t> file, std::size_t offset, byte_memory& memory) {
    file_ = file;
    intervals_ = 0;
    unstuff_.begin(file, offset, memory);
    copy_interval();
  }

  std::uintptr_t begin_bit() const noexcept {
    return reinterpret_cast<std::uintptr_t>(unstuff_.begin_of_interval()) * 8;
  }
  std::uintptr_t end_bit() const noexcept { return reinterpret_cast<std::uintptr_t>(unstuff_.end()) * 8; }

  /// Returns whether only padding separates the position from the next marker.
  bool ends_at(std::uintptr_t bit) const noexcept {
    return unstuff_.at_marker() && bit <= end_bit() && end_bit() - bit < 8;
  }

  /// Returns whether the expected restart marker follows the position. If so, the next interval begins.
  bool next_interval(std::uintptr_t bit) noexcept {
    if (!ends_at(bit) || !unstuff_.next_interval(intervals_++ % 8)) return false;
    copy_interval();
    return true;
  }

  std::size_t end_offset() const noexcept { return static_cast<std::size_t>(unstuff_.position() - file_.data()); }

 private:
  void copy_interval() noexcept { unstuff_.reach(unstuff_.begin_of_interval(), file_.size()); }

  std::span<const std::uint8_t> file_;
  unstuffer unstuff_;
  unsigned intervals_ = 0;
};

}}}  // namespace millrace::detail
