// Decodes the MCUs (coding units) of a JPEG, segment by segment; a segment is several consecutive MCUs. The stream
// handles restart intervals, markers, DC predictors and the end of the data.
//
//   mr::detail::mcu_stream m;
//   if (const auto why = m.read_header(bytes, store); why != mr::jpeg_refusal::none) return why;
//   m.begin_scan();
//   const std::size_t mcus = m.begin_segment(16, false, stop);    // false: skips MCUs; true: stores MCUs
//   loops.run(m.blocks());                                        // block_loops.hpp
//   if (!m.end_segment()) return damaged;
//   if (!m.add_skipped_differences()) return wild;
//
// A stream can continue at an entry (jpeg_entry.hpp) without reading the data before the entry. A wrong entry results
// in wrong pixels, or ends the stream like a damaged file. Lifetime: the file must outlive the stream. Threads: one
// thread at a time.
#pragma once

#include <millrace/image/jpeg/baseline/jpeg_entry.hpp>
#include <millrace/image/jpeg/baseline/scan_header.hpp>
#include <millrace/image/jpeg/baseline/segment_slots.hpp>
#include <millrace/image/jpeg/baseline/unstuffer.hpp>
#include <millrace/simd/byte_marks.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Finds markers in entropy-coded bytes without decoding them.
// Source: ITU-T T.81 B.1.1.2 and B.2.1.

/// Returns the first 0xff that is followed by a byte other than 0. Returns `end` if no such byte exists.
inline const std::uint8_t* find_marker(const std::uint8_t* from, const std::uint8_t* end) noexcept {
  constexpr std::ptrdiff_t chunk_bytes = 32;
  const auto markers_in = [](const std::uint8_t* at) {
    return equal_bytes(load_16(at), 0xff) & ~equal_bytes(load_16(at + 1), 0);
  };
  for (; end - from > chunk_bytes; from += chunk_bytes) {
    const bytes_16 low = markers_in(from), high = markers_in(from + 16);
    if (any_marked(low | high)) return from + first_marked(low, high);
  }
  while (end - from > 1) {
    from = static_cast<const std::uint8_t*>(std::memchr(from, 0xff, static_cast<std::size_t>(end - from - 1)));
    if (from == nullptr) return end;
    if (from[1] != 0) return from;
    from += 2;
  }
  return end;
}

/// Returns the first byte of restart interval `last`. The search begins at `from`, a byte of interval `first`. Returns
/// null if a marker between the two intervals is missing or has a wrong number.
inline const std::uint8_t* find_restart(const std::uint8_t* from, const std::uint8_t* end, unsigned first,
                                        unsigned last) noexcept {
  for (; first < last; ++first) {
    from = find_marker(from, end);
    if (from == end || from[1] != 0xd0 + first % 8) return nullptr;
    from += 2;
  }
  return from;
}

class mcu_stream {
 public:
  /// Reads the header of a file, and prepares the tables for the file.
  jpeg_refusal read_header(std::span<const std::byte> bytes, component_table_store& store) {
    file_ = {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
    if (const auto why = read_scan_header(bytes, header_); why != jpeg_refusal::none) return why;
    for (std::size_t c = 0; c < static_cast<std::size_t>(header_.components); ++c) {
      tables_[c] = store.get(header_.component[c].dc, header_.component[c].ac);
      if (!tables_[c]) return jpeg_refusal::tables;
    }
    if (!completed_ || !slots_.are_of(header_, tables_)) slots_.lay_out(header_, tables_);
    completed_ = false;
    return jpeg_refusal::none;
  }

  /// Sets the position to the first MCU.
  void begin_scan() {
    unstuff_.begin(file_, header_.data_offset_bytes, memory_);
    intervals_ = 0;
    begin_interval();
  }

  /// Call this function only after the end of the last segment to decode, when all coefficients are zero again. Then
  /// the next read_header() can reuse the list of blocks (segment_slots.hpp).
  void end_scan() noexcept { completed_ = true; }

  const scan_header& header() const noexcept { return header_; }
  const segment_slots& slots() const noexcept { return slots_; }
  block_stream& blocks() noexcept { return stream_; }
  std::array<int, 3>& predictors() noexcept { return predictor_; }
  /// Returns the number of the file's bytes after the headers.
  std::size_t coded_bytes() const noexcept { return file_.size() - header_.data_offset_bytes; }

  /// Returns whether a restart marker precedes the next MCU.
  bool interval_has_ended() const noexcept { return header_.restart_interval > 0 && left_in_interval_ == 0; }

  /// Skips the marker that ends the interval. Returns false if the expected marker is missing, or if data other than
  /// padding precedes the marker.
  bool begin_next_interval() noexcept {
    if (!at_marker() || !unstuff_.next_interval(intervals_ % 8)) return false;
    ++intervals_;
    begin_interval();
    return true;
  }

  /// Returns the number of the restart interval, beginning at 0.
  unsigned interval() const noexcept { return intervals_; }

  /// Returns whether only padding separates the stream's position from the next marker.
  bool at_marker() noexcept {
    unstuff_.reach(stream_byte(), 64);
    return unstuff_.ended() && unstuff_.at_marker() &&
           reinterpret_cast<std::uintptr_t>(unstuff_.end()) * 8 - stream_.bit < 8;
  }

  /// Searches for the start of the later restart interval `number`, and sets `entry` to this start. Returns false if a
  /// marker is missing or has a wrong number.
  bool find_interval(unsigned number, jpeg_entry& entry) noexcept {
    if (interval_has_ended() && !at_marker()) return false;
    const std::uint8_t* const begin = find_restart(unstuff_.source(), file_.data() + file_.size(), intervals_, number);
    entry = jpeg_entry{.mcu = std::int64_t{number} * header_.restart_interval};
    if (begin != nullptr) entry.offset_bytes = static_cast<std::size_t>(begin - file_.data());
    return begin != nullptr;
  }

  /// Continues at an entry. Returns false if the entry is outside the file's coded data.
  bool enter(const jpeg_entry& e) noexcept {
    if (e.offset_bytes < header_.data_offset_bytes || e.offset_bytes >= file_.size()) return false;
    unstuff_.seek(file_.data() + e.offset_bytes);
    begin_interval();
    stream_.bit += e.bit;
    predictor_ = e.dc;
    if (header_.restart_interval > 0) {
      intervals_ = static_cast<unsigned>(e.mcu / header_.restart_interval);
      left_in_interval_ -= static_cast<unsigned>(e.mcu % header_.restart_interval);
    }
    return true;
  }

  /// Sets the end of the data that will be decoded, as an offset in the file. A limit avoids copies of unneeded bytes.
  void limit(std::size_t offset_bytes) noexcept {
    constexpr std::size_t lookahead_bytes = 8;
    unstuff_.limit(file_.data() + std::min(offset_bytes, file_.size() - lookahead_bytes) + lookahead_bytes);
  }

  /// Begins a segment of at most `mcus` MCUs. If the segment is stored, these MCUs must be in one row. Returns the
  /// number of MCUs in the segment.
  std::size_t begin_segment(std::size_t mcus, bool stored, const stop_table& stop) noexcept {
    mcus = std::min(mcus, stored ? slots_.stored_mcus() : slots_.skipped_mcus());
    if (header_.restart_interval > 0) mcus = std::min<std::size_t>(mcus, left_in_interval_);
    mcus_ = mcus;
    left_in_interval_ -= static_cast<unsigned>(mcus);
    const std::size_t blocks = mcus * slots_.blocks_of_mcu();
    unstuff_.reach(stream_byte(), blocks * max_block_bytes + 16);
    stream_.begin_segment(stored ? slots_.stored() : slots_.skipped(), blocks, stored, stop);
    return mcus;
  }

  /// Ends a segment that a loop has decoded. Returns false if the segment's codes were invalid or extended beyond the
  /// data.
  bool end_segment() noexcept {
    stream_.end_segment();
    return !stream_.invalid && !overran();
  }

  /// Adds the DC differences of a skipped segment to the predictors. Returns false if a predictor becomes too large.
  bool add_skipped_differences() noexcept {
    const block_slot* slot = slots_.skipped();
    const std::size_t blocks = slots_.blocks_of_mcu();
    std::array<int, max_mcu_blocks> sum{};   // one per block, so that the additions are independent
    for (std::size_t m = 0; m < mcus_; ++m)
      for (std::size_t b = 0; b < blocks; ++b, ++slot) sum[b] += difference_at(slot->begin_bit, *slot->tables);
    for (std::size_t b = 0; b < blocks; ++b) predictor_[slots_.component_of(b)] += sum[b];
    return std::all_of(predictor_.begin(), predictor_.end(), [](int p) { return std::abs(p) <= 32'767; });
  }

  /// Returns the position of the next MCU in the bytes that the unstuffer has copied.
  const std::uint8_t* stream_byte() const noexcept { return reinterpret_cast<const std::uint8_t*>(stream_.bit / 8); }
  const unstuffer& copied() const noexcept { return unstuff_; }
  std::span<const std::uint8_t> file() const noexcept { return file_; }

 private:
  void begin_interval() noexcept {
    predictor_ = {};
    stream_ = {};
    stream_.bit = reinterpret_cast<std::uintptr_t>(unstuff_.begin_of_interval()) * 8;
    left_in_interval_ = header_.restart_interval;
  }

  /// Returns whether blocks used bits beyond the end of the data, or beyond the limit. If the file ends without a
  /// marker, its last 16 bytes also count as beyond the end: libjpeg reads ahead, and might report damage at these
  /// bytes.
  bool overran() const noexcept {
    constexpr std::uintptr_t libjpeg_reads_ahead_bytes = 16;
    const auto end = reinterpret_cast<std::uintptr_t>(unstuff_.end());
    return stream_.bit > (end - (unstuff_.ended() && !unstuff_.at_marker() ? libjpeg_reads_ahead_bytes : 0)) * 8;
  }

  static int difference_at(std::uintptr_t bit, const component_tables& tables) noexcept {
    const std::uint64_t window = bit_window_at(bit);
    const coefficient_entry& e = tables.difference[window >> (64 - difference_index_bits)];
    if (__builtin_expect(e.bits != 0, 1)) return portable_huffman_steps::value(window, e);
    const auto [length, size] = tables.dc_code.find(window);
    return size == 0 ? 0 : extended(static_cast<unsigned>(window << length >> (64 - size)), size);
  }

  std::span<const std::uint8_t> file_{};
  scan_header header_;
  segment_slots::tables_of_components tables_;
  segment_slots slots_;
  unstuffer unstuff_;
  block_stream stream_;
  unstuffed_memory memory_;
  std::array<int, 3> predictor_{};
  unsigned left_in_interval_ = 0, intervals_ = 0;
  std::size_t mcus_ = 0;     // MCUs of the segment
  bool completed_ = false;   // the previous image was decoded to its end, so all coefficients are zero
};

}}}   // namespace millrace::detail
