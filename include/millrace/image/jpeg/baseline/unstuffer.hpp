// Copies a JPEG's entropy-coded bytes up to a requested position, without the zero that is stuffed after each 0xff. An
// interval is the data between two restart markers, or all data of a file without restart markers.
//
//   mr::detail::unstuffer u;
//   u.begin(file, scan_begin, memory);           // memory: an unstuffed_memory, which may grow
//   u.reach(from, bytes);                        // copies until at least `bytes` copied bytes follow `from`
//   const std::uint8_t* end = u.end();           // the end of the copied bytes
//   bool begun = u.next_interval(number);        // skips the marker RSTn; false if RSTn is missing
//   u.seek(from);                                // or: continues at another byte of the file
//
// A decoder may read `slack_bytes` bytes beyond the copied bytes. Their values are undefined. If the decoder's position
// is beyond end(), the decoder has used undefined bytes.
// Errors: none. Lifetime: the file must outlive the object. Threads: one thread at a time.
// Source: ITU-T T.81 F.1.2.3, B.2.1.
#pragma once

#include <millrace/simd/byte_marks.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A buffer that grows. Its contents are undefined until written.
class unstuffed_memory {
 public:
  static constexpr std::size_t alignment = 64;

  std::uint8_t* at_least(std::size_t bytes) {
    if (bytes > size_bytes_) {
      // The buffer grows geometrically, because random crops vary in size.
      const std::size_t grown = std::max(bytes, size_bytes_ + size_bytes_ / 2);
      memory_.reset();
      size_bytes_ = 0;
      memory_.reset(new std::uint8_t[grown + alignment]);   // libc++ 14 has no std::make_unique_for_overwrite
      size_bytes_ = grown;
    }
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.get());
    return memory_.get() + (alignment - address % alignment) % alignment;
  }

 private:
  std::unique_ptr<std::uint8_t[]> memory_;
  std::size_t size_bytes_ = 0;
};

class unstuffer {
 public:
  static constexpr std::size_t slack_bytes = std::size_t{24} << 10;

  void begin(std::span<const std::uint8_t> file, std::size_t scan_begin, unstuffed_memory& memory) {
    from_ = file.data() + scan_begin;
    file_end_ = limit_ = file.data() + file.size();
    start_ = memory.at_least(file.size() - scan_begin + copied_at_once + slack_bytes);
    begin_interval();
  }

  const std::uint8_t* begin_of_interval() const noexcept { return start_; }
  const std::uint8_t* end() const noexcept { return to_; }
  bool ended() const noexcept { return ended_; }
  /// Returns whether the interval ended at a marker. Returns false if the interval ended at a fill byte or at the end
  /// of the file.
  bool at_marker() const noexcept { return at_marker_; }
  /// Returns the current position in the file. If a marker ended the interval, this is the position of the marker.
  const std::uint8_t* position() const noexcept { return from_; }

  /// Returns the position in the file of the next byte to copy.
  const std::uint8_t* source() const noexcept { return from_; }
  /// Returns the position in the file of the byte at begin_of_interval().
  const std::uint8_t* source_of_interval() const noexcept { return interval_from_; }

  /// Continues at another byte of the file, as if an interval began there.
  void seek(const std::uint8_t* from) noexcept {
    from_ = from;
    begin_interval();
  }

  /// Sets a limit: copying stops a few bytes after this byte of the file. The interval does not end at the limit.
  void limit(const std::uint8_t* at) noexcept { limit_ = at; }

  /// Copies until end() - from >= bytes, or the interval ends, or the limit is reached.
  void reach(const std::uint8_t* from, std::size_t bytes) noexcept {
    if (ended_ || static_cast<std::size_t>(to_ - from) >= bytes) return;
    constexpr std::size_t ahead = std::size_t{4} << 10;
    copy_until(from + bytes + ahead);
  }

  /// If the marker at the end of the interval is RST`number`, begins the next interval and returns true; otherwise
  /// returns false. reach() copies the bytes of the next interval to the start of the memory.
  bool next_interval(unsigned number) noexcept {
    if (!ended_ || !at_marker_ || from_[1] != 0xd0 + number) return false;
    from_ += 2;
    begin_interval();
    return true;
  }

 private:
  static constexpr std::size_t copied_at_once = 32;

  void begin_interval() noexcept {
    interval_from_ = from_;
    to_ = start_;
    ended_ = at_marker_ = false;
  }

  void copy_until(const std::uint8_t* enough) noexcept {
    // The end of the file ends the interval even if the limit is reached, so that a truncated file is detected.
    while (to_ < enough && !ended_ && (from_ < limit_ || from_ == file_end_)) {
      copy_pieces(enough);
      if (from_ == file_end_) finish(false);
      else if (*from_ != 0xff) *to_++ = *from_++;
      else copy_escape();
    }
  }

  /// Copies pieces of fixed size while each 0xff is followed by a stuffed zero. The positions are local variables, so
  /// that the compiler keeps them in registers.
  void copy_pieces(const std::uint8_t* enough) noexcept {
    const std::uint8_t* from = from_;
    std::uint8_t* to = to_;
    // The limit is not checked within a piece, because copying one more piece is cheaper than the check.
    const std::uint8_t* const last = from < limit_ ? std::min(file_end_ - copied_at_once, limit_) : from;
    while (to < enough && from < last) {
      const bytes_16 first = load_16(from), second = load_16(from + 16);
      store_16(to, first);
      store_16(to + 16, second);
      const bytes_16 low = equal_bytes(first, 0xff), high = equal_bytes(second, 0xff);
      if (!any_marked(low | high)) {
        from += copied_at_once;
        to += copied_at_once;
        continue;
      }
      const auto plain = std::size_t{first_marked(low, high)};
      from += plain;
      to += plain;
      if (from[1] != 0) break;
      from += 2;
      ++to;
    }
    from_ = from;
    to_ = to;
  }

  /// Must be called at a 0xff byte. Copies the byte, or ends the interval.
  void copy_escape() noexcept {
    // A second 0xff is a fill byte, not a marker. The interval ends here without a marker. Therefore the decoder
    // refuses the file, and libjpeg decodes it.
    if (file_end_ - from_ < 2 || from_[1] == 0xff) return finish(false);
    if (from_[1] != 0) return finish(true);
    *to_++ = 0xff;
    from_ += 2;
  }

  void finish(bool at_marker) noexcept {
    ended_ = true;
    at_marker_ = at_marker;
    std::memset(to_, 0, copied_at_once);   // a decoder reads ahead into these bytes
  }

  const std::uint8_t* from_ = nullptr;
  const std::uint8_t* file_end_ = nullptr;
  const std::uint8_t* limit_ = nullptr;   // copying stops a few bytes after the limit
  const std::uint8_t* interval_from_ = nullptr;
  std::uint8_t* start_ = nullptr;
  std::uint8_t* to_ = nullptr;
  bool ended_ = false, at_marker_ = false;
};

}}}   // namespace millrace::detail
