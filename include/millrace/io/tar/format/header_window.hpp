// Reads the headers of a shard in order. Chooses the faster of two read sizes.
//
//   mr::detail::header_window window(source, pool);
//   auto header = window.at(offset_bytes, 512);     // shorter only at the end of the shard; valid until the next call
//   window.payload_follows(size_bytes);             // announces the distance to the next header
//
// Each read fetches 256 KiB, which may contain many headers, or 2 KiB, which contain one header. The cheaper size
// depends on the storage and on the sizes of the payloads. Therefore the window measures the time of both sizes.
// Errors: the errors of the source. Threads: not thread-safe. Only tests replace `Clock`.
#pragma once

#include <millrace/base/clock.hpp>
#include <millrace/io/file/byte_source.hpp>
#include <millrace/item/bytes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns the monotonic time in ns.
struct monotonic_clock {
  std::int64_t operator()() const noexcept { return read_clock_ns(CLOCK_MONOTONIC); }
};

/// A view of a shard that moves forward from header to header.
template <class Clock = monotonic_clock>
class basic_header_window {
 public:
  static constexpr std::size_t large_bytes = std::size_t{256} << 10;
  static constexpr std::size_t small_bytes = std::size_t{2} << 10;

  basic_header_window(byte_source& source, block_pool& pool, Clock clock = {})
      : source_(&source), block_(pool.take(large_bytes)), clock_(clock) {}

  /// Returns `count_bytes` bytes starting at `offset_bytes`, or fewer at the end of the shard. `count_bytes` is at most
  /// large_bytes.
  std::span<const std::byte> at(std::uint64_t offset_bytes, std::size_t count_bytes) {
    if (offset_bytes < begin_ || offset_bytes + count_bytes > begin_ + filled_) fill(offset_bytes, count_bytes);
    const std::size_t from = static_cast<std::size_t>(offset_bytes - begin_);
    return std::span<const std::byte>(block_.get()->data(), filled_)
        .subspan(from, std::min(count_bytes, filled_ - from));
  }

  /// Updates the mean distance between headers with the size of the payload after the current header.
  void payload_follows(std::uint64_t size_bytes) noexcept {
    const auto distance = static_cast<double>(size_bytes + 1024);
    distance_bytes_ += (std::min(distance, 1e9) - distance_bytes_) / 8;
  }

 private:
  static constexpr unsigned retry_interval = 512;   // after this number of reads, the slower size is timed again

  void fill(std::uint64_t offset_bytes, std::size_t count_bytes) {
    const bool large_is_cheaper = std::min(distance_bytes_, double(large_bytes)) * large_ns_per_byte_ < small_ns_;
    const bool large = large_is_cheaper != (++fills_ % retry_interval == 0) || fills_ == 1;
    const std::size_t size = std::max(large ? large_bytes : small_bytes, count_bytes);
    const std::int64_t start_ns = clock_();
    begin_ = offset_bytes;
    filled_ = 0;   // stays 0 if the source throws
    filled_ = read_fully(*source_, offset_bytes, {block_.get()->data(), size});
    const auto read_ns = static_cast<double>(clock_() - start_ns);
    if (filled_ < size) return;   // a read at the end of the shard does not show the cost of a full read
    if (large) follow(large_ns_per_byte_, read_ns / double(size));
    else follow(small_ns_, read_ns);
  }

  /// Moves the estimate toward `measured` in small steps, because other programs on the CPU may cause outliers.
  static void follow(double& estimate, double measured) noexcept {
    estimate += (std::clamp(measured, estimate / 2, estimate * 2) - estimate) / 4;
  }

  byte_source* source_;
  block_ref block_;
  Clock clock_;
  std::uint64_t begin_ = 0;
  std::size_t filled_ = 0;
  unsigned fills_ = 0;
  double distance_bytes_ = 4096;     // recent mean distance between two headers
  double large_ns_per_byte_ = 0.1;   // initial estimate, for a shard in the page cache
  double small_ns_ = 1000;
};

using header_window = basic_header_window<>;

}}}   // namespace millrace::detail
