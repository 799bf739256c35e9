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
// caller may move the output between calls. `out` may pass the limit, because a match (a copy of earlier output) is
// always copied completely. The inflater may write undefined bytes after `out`. In total, it writes fewer than
// `slack_bytes` bytes beyond the limit. run() stops at the limit, and does not detect damage after the limit. finish()
// continues to the end of the stream. Bytes outside the pieces are never read.
// Errors: returned as a status; the output before the damage is correct. Threads: not thread-safe; one thread at a
// time. Memory: nothing is allocated.
// Source: RFC 1950 and RFC 1951. Like zlib with its largest window, the inflater accepts distances up to 32768,
// regardless of the stream's header.
#pragma once

#include <millrace/image/png/deflate_codes.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// The inner loop of the inflater: decodes the symbols of a deflate block while there is enough input and space for
// output.
//
//   mr::detail::inflate_state s;                             // the positions of input and output
//   const mr::detail::inflate_stop why = mr::detail::inflate_loop::run(s, codes);
//
// Needs `least_input_bytes` of input. Writes fewer than `slack_bytes` bytes beyond the limit of the output. The bit
// buffer is filled with one unaligned load of 8 bytes. The buffer may contain more than inflate_state::count bits. The
// additional bits equal the next bits of the input. fill() adds the same bits by OR, which does not change them. A
// match is copied in words. The last word may extend beyond the match; later output overwrites these bytes.
// Errors: run() and one() return the reason for the stop. Threads: any thread, if no two calls share an output.
// Source: RFC 1951, 3.2.3; the buffer is filled by "variant 4" of F. Giesen, "Reading bits in far too many ways".

/// The remaining input, and the position in the output. The input is `count` bits in the buffer, followed by the bytes
/// from `in`.
struct inflate_state {
  const std::uint8_t* in = nullptr;
  const std::uint8_t* in_end = nullptr;
  std::uint64_t bits = 0;
  unsigned count = 0;
  std::uint8_t* out = nullptr;
  const std::uint8_t* out_begin = nullptr;   ///< the first byte that a match may copy
  const std::uint8_t* limit = nullptr;       ///< end of the output

  std::size_t input_bytes() const noexcept { return static_cast<std::size_t>(in_end - in); }
};

enum class inflate_stop : std::uint8_t { paused, end_of_block, cut_short, bad_code, bad_distance };

class inflate_loop {
 public:
  static constexpr std::size_t least_input_bytes = 16, slack_bytes = 352;

  /// Decodes until the block ends, the output reaches its limit, or fewer than `least_input_bytes` bytes of input
  /// remain. Also stops at invalid data.
  MILLRACE_ALWAYS_INLINE static inline inflate_stop run(inflate_state& state, const deflate_codes& codes) noexcept {
    inflate_state s = state;   // a local copy, because output bytes may alias `state`
    const std::uint32_t* const literals = codes.literals();
    const std::uint32_t* const distances = codes.distances();
    const std::uint8_t* const last_in = s.in_end - least_input_bytes;
    inflate_stop why = inflate_stop::paused;
    fill(s);
    std::uint32_t e = literals[s.bits & deflate_codes::literal_mask];
    for (;;) {
      // The buffer has at least 56 bits. Four entries of literals use at most 44 bits. At least 12 bits remain for the
      // lookup of the next entry before fill().
      if (is_literal(e)) {
        e = put(s, e, literals);
        if (is_literal(e)) {
          e = put(s, e, literals);
          if (is_literal(e)) {
            e = put(s, e, literals);
            if (is_literal(e)) {
              e = put(s, e, literals);
              if (s.in > last_in || s.out >= s.limit) break;
              fill(s);
              continue;
            }
          }
        }
      }
      if ((e & deflate_entry::special) != 0) {
        if ((e & deflate_entry::second_table) != 0) e = second(e, s.bits, literals, deflate_codes::literal_bits);
        if (is_literal(e)) {
          fill(s);
          e = put(s, e, literals);
          if (s.in > last_in || s.out >= s.limit) break;
          fill(s);
          continue;
        }
        if ((e & deflate_entry::special) != 0) {
          drop(s, e);
          why = (e & deflate_entry::end_of_block) != 0 ? inflate_stop::end_of_block : inflate_stop::bad_code;
          break;
        }
      }
      // After at most three entries of literals (33 bits), the buffer has at least 23 bits. A length uses at most 20.
      // After fill(), the buffer has at least 56 bits. A distance uses at most 28 of them, so the next lookup needs no
      // fill().
      const std::size_t length = number(s, e);
      fill(s);
      e = distances[s.bits & deflate_codes::distance_mask];
      if ((e & deflate_entry::special) != 0) {
        if ((e & deflate_entry::second_table) != 0) e = second(e, s.bits, distances, deflate_codes::distance_bits);
        if ((e & deflate_entry::special) != 0) {
          why = inflate_stop::bad_code;
          break;
        }
      }
      const std::size_t distance = number(s, e);
      e = literals[s.bits & deflate_codes::literal_mask];
      if (distance > static_cast<std::size_t>(s.out - s.out_begin)) {
        why = inflate_stop::bad_distance;
        break;
      }
      copy(s.out, distance, length);
      s.out += length;
      if (s.in > last_in || s.out >= s.limit) break;
      fill(s);
    }
    state = s;
    return why;
  }

  /// Decodes one symbol, even at the end of the input. The caller must fill the buffer to 48 bits or more if there is
  /// enough input. If the output is full, stops before a symbol that writes to it.
  static inflate_stop one(inflate_state& s, const deflate_codes& codes) noexcept {
    std::uint32_t e = codes.literals()[s.bits & deflate_codes::literal_mask];
    if (has_second_table(e)) e = second(e, s.bits, codes.literals(), deflate_codes::literal_bits);
    if (is_literal(e) && (e & deflate_entry::coded_bits) > s.count) e = first_alone(e);
    if ((e & deflate_entry::coded_bits) > s.count) return inflate_stop::cut_short;
    if (is_literal(e)) {
      if (s.out < s.limit) put(s, e, codes.literals());
      return inflate_stop::paused;
    }
    if ((e & deflate_entry::special) != 0) {
      drop(s, e);
      return (e & deflate_entry::end_of_block) != 0 ? inflate_stop::end_of_block : inflate_stop::bad_code;
    }
    if (s.out >= s.limit) return inflate_stop::paused;
    const std::size_t length = number(s, e);
    e = codes.distances()[s.bits & deflate_codes::distance_mask];
    if (has_second_table(e)) e = second(e, s.bits, codes.distances(), deflate_codes::distance_bits);
    if ((e & deflate_entry::coded_bits) > s.count) return inflate_stop::cut_short;
    if ((e & deflate_entry::special) != 0) return inflate_stop::bad_code;
    const std::size_t distance = number(s, e);
    if (distance > static_cast<std::size_t>(s.out - s.out_begin)) return inflate_stop::bad_distance;
    copy(s.out, distance, length);
    s.out += length;
    return inflate_stop::paused;
  }

  /// Fills the buffer to 56 bits or more.
  MILLRACE_ALWAYS_INLINE static inline void fill(inflate_state& s) noexcept {
    s.bits |= load64(s.in) << s.count;
    s.in += (63 - s.count) >> 3;
    s.count |= 56;
  }

 private:
  static bool is_literal(std::uint32_t e) noexcept { return static_cast<std::int32_t>(e) < 0; }

  /// Returns whether the entry refers to a second table. Literals use the same bits for other values.
  static bool has_second_table(std::uint32_t e) noexcept {
    constexpr std::uint32_t both = deflate_entry::special | deflate_entry::second_table;
    return !is_literal(e) && (e & both) == both;
  }

  static std::uint64_t load64(const std::uint8_t* from) noexcept {
    std::uint64_t v;
    std::memcpy(&v, from, sizeof v);
    return std::endian::native == std::endian::little ? v : __builtin_bswap64(v);
  }

  static void drop(inflate_state& s, std::uint32_t e) noexcept {
    s.bits >>= e & 63;
    s.count -= e & deflate_entry::coded_bits;
  }

  /// Writes one or two literals, and returns the next entry.
  MILLRACE_ALWAYS_INLINE static inline std::uint32_t put(inflate_state& s, std::uint32_t e,
                                                         const std::uint32_t* literals) noexcept {
    drop(s, e);
    static_assert(deflate_entry::second_at == deflate_entry::literals_at + 8);
    auto two = static_cast<std::uint16_t>(e >> deflate_entry::literals_at);
    if constexpr (std::endian::native == std::endian::big) two = __builtin_bswap16(two);
    std::memcpy(s.out, &two, sizeof two);
    s.out += e >> deflate_entry::count_at & 3;
    return literals[s.bits & deflate_codes::literal_mask];
  }

  static std::uint32_t first_alone(std::uint32_t e) noexcept {
    const std::uint32_t bits = e >> deflate_entry::first_bits_at & 15;
    return (e & ~(deflate_entry::coded_bits | 3U << deflate_entry::count_at)) | bits | 1U << deflate_entry::count_at;
  }

  static std::uint32_t second(std::uint32_t e, std::uint64_t bits, const std::uint32_t* table,
                              unsigned index_bits) noexcept {
    return table[(e >> deflate_entry::base_at) + low(bits >> index_bits, e >> deflate_entry::code_bits_at & 31)];
  }

  static std::uint64_t low(std::uint64_t bits, unsigned count) noexcept {
    return bits & ((std::uint64_t{1} << count) - 1);
  }

  /// Reads a length or a distance with its extra bits.
  MILLRACE_ALWAYS_INLINE static inline std::size_t number(inflate_state& s, std::uint32_t e) noexcept {
    const std::uint64_t coded = low(s.bits, e & 63);
    drop(s, e);
    return (e >> deflate_entry::base_at) + (coded >> (e >> deflate_entry::code_bits_at & 31));
  }

  template <std::size_t bytes>
  MILLRACE_ALWAYS_INLINE static inline void copy_word(std::uint8_t* to, const std::uint8_t* from) noexcept {
    std::uint8_t word[bytes];
    std::memcpy(word, from, bytes);
    std::memcpy(to, word, bytes);
  }

  MILLRACE_ALWAYS_INLINE static inline void copy_64(std::uint8_t* to, const std::uint8_t* from) noexcept {
    copy_word<16>(to, from);
    copy_word<16>(to + 16, from + 16);
    copy_word<16>(to + 32, from + 32);
    copy_word<16>(to + 48, from + 48);
  }

  MILLRACE_ALWAYS_INLINE static inline void copy(std::uint8_t* out, std::size_t distance, std::size_t length) noexcept {
    const std::uint8_t* from = out - distance;
    std::uint8_t* const end = out + length;
    // A match has at most 258 bytes. The processor predicts two comparisons with fixed lengths better than the end of a
    // loop.
    if (distance >= 16) {
      copy_64(out, from);
      if (length <= 64) return;
      copy_64(out + 64, from + 64);
      copy_64(out + 128, from + 128);
      if (length <= 192) return;
      copy_64(out + 192, from + 192);
      copy_word<16>(out + 256, from + 256);
      return;
    }
    if (distance == 1) {
      const std::uint8_t byte = *from;
      std::memset(out, byte, 64);
      if (length <= 64) return;
      std::memset(out + 64, byte, 128);
      if (length > 192) std::memset(out + 192, byte, 80);
      return;
    }
    // The match repeats the last `distance` bytes of the output. Each step doubles the distance between `from` and
    // `out`, until a word of 8 bytes fits between them.
    for (; distance < 8; distance *= 2) {
      copy_word<8>(out, from);
      out += distance;
    }
    for (; out < end; out += 8, from += 8) copy_word<8>(out, from);
  }
};

enum class inflate_status : std::uint8_t {
  more,         ///< the limit is reached
  ended,        ///< the stream has ended
  cut_short,    ///< the input ended before the stream
  bad_header,   ///< invalid zlib header
  bad_block_type,
  bad_stored_length,
  bad_code_lengths,   ///< code lengths that do not define a valid Huffman code
  bad_code,           ///< bits that are not a code word
  bad_distance        ///< a distance that points before the start of the output
};

/// Returns a description of the status, for messages.
const char* inflate_status_text(inflate_status status) noexcept;

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

  /// Writes output at `out`, and advances `out` until it reaches or passes `limit`. Returns `bad_distance` if a match
  /// (a copy of earlier output) would copy bytes before `begin`.
  inflate_status run(const std::uint8_t* begin, std::uint8_t*& out, const std::uint8_t* limit) noexcept;

  /// Reads the rest of the stream and returns `ended`. If the rest contains output, stops before this output and
  /// returns `more`.
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
  /// Ensures that the buffer contains at least `bits` bits. `bits` is at most 48. Returns false if fewer bits remain.
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
  std::size_t overlap_bytes_ = 0;   // number of bytes before piece_ that were copied to the end of state_'s input
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
