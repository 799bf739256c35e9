// Definitions for inflate.hpp.
#pragma once

#include <millrace/image/png/inflate.hpp>

#include <millrace/simd/cpu_features.hpp>

#include <algorithm>
#include <cstring>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE const char* inflate_status_text(inflate_status status) noexcept {
  switch (status) {
    case inflate_status::more: return "more output than rows";
    case inflate_status::ended: return "the end of the stream";
    case inflate_status::cut_short: return "the end of the input";
    case inflate_status::bad_header: return "an invalid zlib header";
    case inflate_status::bad_block_type: return "a block of an unknown type";
    case inflate_status::bad_stored_length: return "a stored block whose two lengths differ";
    case inflate_status::bad_code_lengths: return "a block with invalid code lengths";
    case inflate_status::bad_code: return "an invalid code word";
    case inflate_status::bad_distance: return "a match that begins before the first byte";
  }
  return "damage";
}

MILLRACE_INLINE void inflater::begin(inflate_input& input) noexcept {
  input_ = &input;
  state_ = inflate_state{};
  piece_ = {};
  overlap_bytes_ = 0;
  last_block_ = false;
  place_ = place::stream_header;
}

MILLRACE_INLINE inflate_status inflater::run(const std::uint8_t* begin, std::uint8_t*& out,
                                             const std::uint8_t* limit) noexcept {
  state_.out_begin = begin;
  state_.out = out;
  state_.limit = limit;
  const inflate_status status = run_blocks(false);
  out = state_.out;
  return status;
}

MILLRACE_INLINE inflate_status inflater::finish() noexcept {
  state_.limit = state_.out;
  return run_blocks(true);
}

MILLRACE_INLINE inflate_status inflater::run_blocks(bool to_the_end) noexcept {
  auto status = inflate_status::more;
  while (status == inflate_status::more) {
    if (place_ == place::ended) return inflate_status::ended;
    if (state_.out >= state_.limit) {
      if (!to_the_end) break;
      if (place_ == place::stored && stored_bytes_ > 0) break;
    }
    switch (place_) {
      case place::stream_header: status = read_stream_header(); break;
      case place::block_header: status = read_block_header(); break;
      case place::stored: status = copy_stored(); break;
      case place::coded: {
        const std::uint8_t* const before = state_.out;
        status = decode();
        const bool stuck = place_ == place::coded && state_.out == before && before >= state_.limit;
        if (status == inflate_status::more && stuck) return status;
        break;
      }
      case place::trailer: status = read_trailer(); break;
      case place::ended: break;
    }
  }
  return status;
}

MILLRACE_INLINE inflate_status inflater::read_stream_header() noexcept {
  if (!need(16)) return inflate_status::cut_short;
  const std::uint32_t method = take(8), flags = take(8);
  constexpr std::uint32_t deflate = 8, dictionary = 32;
  if ((method & 15) != deflate || method >> 4 > 7 || (method << 8 | flags) % 31 != 0 || (flags & dictionary) != 0)
    return inflate_status::bad_header;
  place_ = place::block_header;
  return inflate_status::more;
}

MILLRACE_INLINE inflate_status inflater::read_block_header() noexcept {
  if (last_block_) {
    place_ = place::trailer;
    return inflate_status::more;
  }
  if (!need(3)) return inflate_status::cut_short;
  last_block_ = take(1) != 0;
  switch (take(2)) {
    case 0: return read_stored_header();
    case 1:
      codes_.build_fixed();
      place_ = place::coded;
      return inflate_status::more;
    case 2: return read_codes();
    default: return inflate_status::bad_block_type;
  }
}

MILLRACE_INLINE inflate_status inflater::read_stored_header() noexcept {
  take(state_.count % 8);
  if (!need(32)) return inflate_status::cut_short;
  stored_bytes_ = take(16);
  if (stored_bytes_ != (take(16) ^ 0xffff)) return inflate_status::bad_stored_length;
  place_ = place::stored;
  return inflate_status::more;
}

MILLRACE_INLINE inflate_status inflater::copy_stored() noexcept {
  // Copy the bytes in the bit buffer first. Then clear it, because it may contain a part of the next byte.
  while (stored_bytes_ > 0 && state_.count >= 8 && state_.out < state_.limit) {
    *state_.out++ = static_cast<std::uint8_t>(take(8));
    --stored_bytes_;
  }
  if (stored_bytes_ > 0 && state_.out < state_.limit) {
    state_.bits = 0;
    state_.count = 0;
    if (state_.in == state_.in_end && !fetch()) return inflate_status::cut_short;
    const std::size_t now = std::min(
        {std::size_t{stored_bytes_}, state_.input_bytes(), static_cast<std::size_t>(state_.limit - state_.out)});
    std::memcpy(state_.out, state_.in, now);
    state_.out += now;
    state_.in += now;
    stored_bytes_ -= static_cast<std::uint32_t>(now);
  }
  if (stored_bytes_ == 0) place_ = place::block_header;
  return inflate_status::more;
}

MILLRACE_INLINE inflate_status inflater::read_codes() noexcept {
  if (!need(14)) return inflate_status::cut_short;
  const std::size_t literals = 257 + take(5), distances = 1 + take(5), lengths = 4 + take(4);
  if (literals > 286 || distances > 30) return inflate_status::bad_code_lengths;
  std::uint8_t of_lengths[deflate_codes::length_symbols] = {};
  constexpr std::uint8_t order[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  for (std::size_t i = 0; i < lengths; ++i) {
    if (!need(3)) return inflate_status::cut_short;
    of_lengths[order[i]] = static_cast<std::uint8_t>(take(3));
  }
  deflate_length_code code;
  if (!code.build(of_lengths)) return inflate_status::bad_code_lengths;
  std::uint8_t length[deflate_codes::literal_symbols + deflate_codes::distance_symbols];
  const std::size_t total = literals + distances;
  for (std::size_t i = 0; i < total;) {
    if (state_.count < 14) refill();
    const std::uint32_t entry = code.entry(state_.bits), bits = entry & deflate_entry::coded_bits;
    const std::uint32_t symbol = entry >> deflate_entry::base_at;
    const std::uint32_t more_bits = symbol < 16 ? 0 : symbol == 16 ? 2 : symbol == 17 ? 3 : 7;
    if (bits + more_bits > state_.count) return inflate_status::cut_short;
    take(bits);
    if (symbol < 16) {
      length[i++] = static_cast<std::uint8_t>(symbol);
      continue;
    }
    if (symbol == 16 && i == 0) return inflate_status::bad_code_lengths;
    const std::size_t times = (symbol == 18 ? 11 : 3) + take(more_bits);
    if (times > total - i) return inflate_status::bad_code_lengths;
    std::memset(length + i, symbol == 16 ? length[i - 1] : 0, times);
    i += times;
  }
  constexpr std::size_t end_of_block = 256;
  if (length[end_of_block] == 0 || !codes_.build({length, literals}, {length + literals, distances}))
    return inflate_status::bad_code_lengths;
  place_ = place::coded;
  return inflate_status::more;
}

MILLRACE_INLINE inflate_status inflater::read_trailer() noexcept {
  take(state_.count % 8);
  if (!need(32)) return inflate_status::cut_short;
  checksum_ = __builtin_bswap32(take(32));
  place_ = place::ended;
  return inflate_status::more;
}

MILLRACE_INLINE inflate_status inflater::decode() noexcept {
  inflate_stop why;
  while (state_.input_bytes() < inflate_loop::least_input_bytes && fetch()) {}
  if (state_.input_bytes() >= inflate_loop::least_input_bytes && state_.out < state_.limit) {
    why = run_loop();
  } else {
    refill();
    why = inflate_loop::one(state_, codes_);
  }
  switch (why) {
    case inflate_stop::end_of_block: place_ = place::block_header; break;
    case inflate_stop::cut_short: return inflate_status::cut_short;
    case inflate_stop::bad_code: return inflate_status::bad_code;
    case inflate_stop::bad_distance: return inflate_status::bad_distance;
    case inflate_stop::paused: break;
  }
  return inflate_status::more;
}

#ifdef __x86_64__
MILLRACE_INLINE __attribute__((target("bmi,bmi2"))) inflate_stop inflater::run_loop_by_bmi2() noexcept {
  return inflate_loop::run(state_, codes_);
}
#endif

MILLRACE_INLINE inflate_stop inflater::run_loop() noexcept {
#ifdef __x86_64__
  if (cpu_has_bit_manipulation()) return run_loop_by_bmi2();
#endif
  return inflate_loop::run(state_, codes_);
}

MILLRACE_INLINE bool inflater::fetch() noexcept {
  while (piece_.empty()) {
    piece_ = input_->next();
    overlap_bytes_ = 0;
    if (piece_.empty()) return false;
  }
  const std::size_t left = state_.input_bytes();
  if (left <= overlap_bytes_) {   // the remaining bytes also directly precede the piece in memory
    state_.in = piece_.data() - left;
    state_.in_end = piece_.data() + piece_.size();
    piece_ = {};
    return true;
  }
  const std::size_t now = std::min(bridge_bytes - left, piece_.size());
  std::memmove(bridge_, state_.in, left);
  std::memcpy(bridge_ + left, piece_.data(), now);
  state_.in = bridge_;
  state_.in_end = bridge_ + left + now;
  piece_ = piece_.subspan(now);
  overlap_bytes_ = now;
  return true;
}

MILLRACE_INLINE void inflater::refill() noexcept {
  inflate_state& s = state_;
  for (;;) {
    if (s.input_bytes() >= sizeof s.bits) return inflate_loop::fill(s);
    for (; s.count <= 56 && s.in != s.in_end; s.count += 8) s.bits |= std::uint64_t{*s.in++} << s.count;
    if (s.count > 56 || !fetch()) return;
  }
}

}}}   // namespace millrace::detail
