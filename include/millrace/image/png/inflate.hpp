// Inflates a zlib stream that lies in pieces, as far as the caller asks; written for the rows of a PNG.
//
//   mr::detail::inflater zip;                                    // 20 KiB, kept from stream to stream
//   zip.begin(pieces);                                           // pieces.next() gives the input
//   std::uint8_t* out = memory;
//   while (out < wanted)
//     if (const auto s = zip.run(memory, out, wanted); s != mr::detail::inflate_status::more) return s;
//
// The output lies in one memory, which holds the last `window_bytes` of it at least. The caller may move it between
// calls. Less than `slack_bytes` may be written beyond the limit, and these bytes may be more output or nothing.
// run() stops as soon as the limit is reached, so damage behind it is not seen. finish() goes on to the stream's end.
// Input is read where it lies. Only the bytes around the border of two pieces are copied. No byte outside of a piece is
// read.
// Errors: a status; output before the damage is right. Threads: one at a time. Memory: nothing is allocated.
// Source: RFC 1950 and RFC 1951. Like zlib with its largest window, it takes distances up to 32768, whatever the
// stream's header says.
#pragma once

#include <millrace/image/png/inflate_loop.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

enum class inflate_status : std::uint8_t {
  more,                ///< the limit is reached
  ended,               ///< the stream has ended
  cut_short,           ///< the input ended before the stream
  bad_header,          ///< of the zlib stream
  bad_block_type,
  bad_stored_length,
  bad_code_lengths,    ///< they make no code
  bad_code,            ///< bits that are not in the code
  bad_distance         ///< beyond the first byte of the output
};

/// Returns the status in words, for messages.
const char* words_of(inflate_status status) noexcept;

/// Gives the pieces of a stream.
class inflate_input {
 public:
  /// Returns the next piece, which has to stay where it is until the stream's end; an empty one behind the last.
  virtual std::span<const std::uint8_t> next() noexcept = 0;

 protected:
  ~inflate_input() = default;
};

class inflater {
 public:
  static constexpr std::size_t window_bytes = 32'768, slack_bytes = inflate_loop::slack_bytes;

  /// Begins a stream. `input` must outlive the last call of run() and finish().
  void begin(inflate_input& input) noexcept;

  /// Writes output at `out` and moves `out`, until it is at `limit` or beyond. Matches may copy from `begin` on.
  inflate_status run(const std::uint8_t* begin, std::uint8_t*& out, const std::uint8_t* limit) noexcept;

  /// Goes on to the stream's end, if there is no more output; else returns `more`.
  inflate_status finish() noexcept;

  /// Returns the Adler-32 at the stream's end; only after the status `ended`.
  std::uint32_t checksum() const noexcept { return checksum_; }

 private:
  enum class place : std::uint8_t { stream_header, block_header, stored, coded, trailer, ended };

  inflate_status go_on(bool to_the_end) noexcept;
  inflate_status read_stream_header() noexcept;
  inflate_status read_block_header() noexcept;
  inflate_status read_stored_header() noexcept;
  inflate_status read_codes() noexcept;
  inflate_status read_trailer() noexcept;
  inflate_status copy_stored() noexcept;
  inflate_status decode() noexcept;

  inflate_stop run_loop() noexcept;
#ifdef __x86_64__
  /// The same with the shifts of BMI2, which need no fixed register.
  __attribute__((target("bmi,bmi2"))) inflate_stop run_loop_by_bmi2() noexcept;
#endif
  /// Brings the next piece. Returns false behind the last one.
  bool fetch() noexcept;
  /// Fills the bit buffer to 48 bits or more, or with all bits that are left.
  void refill() noexcept;
  /// Makes that so many bits are in the buffer, at most 48. Returns false if there are not as many.
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
  std::span<const std::uint8_t> piece_{};   // what is not in state_ of the last piece that was fetched
  std::size_t behind_ = 0;                  // bytes of state_'s end that lie before piece_ in memory, too
  bool last_block_ = false;
  place place_ = place::stream_header;
  std::uint32_t stored_bytes_ = 0, checksum_ = 0;
  std::uint8_t bridge_[bridge_bytes];
  deflate_codes codes_;
};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/image/png/impl/inflate.inl>
#endif
