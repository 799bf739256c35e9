// Inflates a zlib stream that is stored in pieces. Each call stops at a limit that the caller sets. Designed for the
// rows of a PNG.
//
//   mr::detail::inflater zip;                                    // 20 KiB, reused for all streams
//   zip.begin(pieces);                                           // pieces.next() returns the input
//   std::uint8_t* out = memory;
//   while (out < end)
//     if (const auto s = zip.run(memory, out, end); s != mr::detail::inflate_status::more) return s;
//
// The output is written to one block of memory, which must still contain the last `window_bytes` of earlier output. The
// caller may move the output between calls. Fewer than `slack_bytes` bytes may be written beyond the limit; their
// values are undefined. run() stops at the limit, and does not detect damage after the limit. finish() continues to the
// end of the stream. Bytes outside the pieces are never read.
// Errors: returned as a status; the output before the damage is correct. Threads: not thread-safe; one thread at a
// time. Memory: nothing is allocated.
// Source: RFC 1950 and RFC 1951. Like zlib with its largest window, the inflater accepts distances up to 32768,
// regardless of the stream's header.
#pragma once

#include <millrace/image/png/inflate_loop.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

enum class inflate_status : std::uint8_t {
  more,         ///< the limit is reached
  ended,        ///< the stream has ended
  cut_short,    ///< the input ended before the stream
  bad_header,   ///< invalid zlib header
  bad_block_type,
  bad_stored_length,
  bad_code_lengths,   ///< not a valid code
  bad_code,           ///< bits that are not a code word
  bad_distance        ///< a distance that points before the output
};

/// Returns a description of the status, for messages.
const char* describe(inflate_status status) noexcept;

/// Delivers the pieces of a stream.
class inflate_input {
 public:
  /// Returns the next piece, or an empty span after the last piece. Pieces must stay valid until the end of the stream.
  virtual std::span<const std::uint8_t> next() noexcept = 0;

 protected:
  ~inflate_input() = default;
};

class inflater {
 public:
  static constexpr std::size_t window_bytes = 32'768, slack_bytes = inflate_loop::slack_bytes;

  /// Begins a stream. `input` must outlive the last call of run() and finish().
  void begin(inflate_input& input) noexcept;

  /// Writes output at `out`, and advances `out` until it reaches `limit`. A match (a copy of earlier output) must not
  /// begin before `begin`.
  inflate_status run(const std::uint8_t* begin, std::uint8_t*& out, const std::uint8_t* limit) noexcept;

  /// Continues to the end of the stream. Returns `more` if the stream contains more output.
  inflate_status finish() noexcept;

  /// Returns the Adler-32 that is stored at the end of the stream. Valid only after the status `ended`.
  std::uint32_t checksum() const noexcept { return checksum_; }

 private:
  enum class place : std::uint8_t { stream_header, block_header, stored, coded, trailer, ended };

  inflate_status run_blocks(bool to_the_end) noexcept;
  inflate_status read_stream_header() noexcept;
  inflate_status read_block_header() noexcept;
  inflate_status read_stored_header() noexcept;
  inflate_status read_codes() noexcept;
  inflate_status read_trailer() noexcept;
  inflate_status copy_stored() noexcept;
  inflate_status decode() noexcept;

  inflate_stop run_loop() noexcept;
#ifdef __x86_64__
  /// Like run_loop(), with the instructions of BMI2.
  __attribute__((target("bmi,bmi2"))) inflate_stop run_loop_by_bmi2() noexcept;
#endif
  /// Fetches the next piece. Returns false after the last piece.
  bool fetch() noexcept;
  /// Fills the bit buffer to 48 bits or more, or with all remaining bits.
  void refill() noexcept;
  /// Ensures that the buffer has `bits` bits, at most 48. Returns false if fewer bits remain.
  bool need(unsigned bits) noexcept {
    if (state_.count < bits) refill();
    return state_.count >= bits;
  }
  std::uint32_t take(unsigned bits) noexcept {
    const auto value = static_cast<std::uint32_t>(state_.bits & ((std::uint64_t{1} << bits) - 1));
    state_.bits >>= bits;
    state_.count -= bits;
    return value;
  }

  static constexpr std::size_t bridge_bytes = 64;

  inflate_input* input_ = nullptr;
  inflate_state state_;
  std::span<const std::uint8_t> piece_{};   // the part of the last fetched piece that is not in state_
  std::size_t overlap_bytes_ = 0;           // last bytes of state_'s input that directly precede piece_ in memory
  bool last_block_ = false;
  place place_ = place::stream_header;
  std::uint32_t stored_bytes_ = 0, checksum_ = 0;
  std::uint8_t bridge_[bridge_bytes];
  deflate_codes codes_;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/image/png/impl/inflate.inl>
#endif
