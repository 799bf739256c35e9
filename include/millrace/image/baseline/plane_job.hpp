// Decodes one JPEG to planes, segment by segment, so that two JPEGs can share a core.
//
//   mr::detail::plane_tools tools;
//   tools.take_best();                                   // for this processor
//   mr::detail::plane_job job;
//   job.begin(request, store, tools);
//   while (!job.finished()) { tools.loops.run(job.stream()); job.attend(tools); }
//   const mr::detail::jpeg_planes_result& got = job.result();
//
// The job goes through all rows of MCUs from the picture's first row to the last one wanted. MCUs within the region are
// stored, the others are skipped.
// The job refuses a picture where libjpeg might warn or give another value; libjpeg then decides. Such cases are an
// impossible code, a block that is too long, and fewer bytes than the blocks take. A missing marker, and bytes before a
// marker, are such cases, too. Damage below the last wanted row of MCUs is not detected.
// Lifetime: the request's bytes outlive the job. The result is valid until the next begin(). Threads: one at a time.
#pragma once

#include <millrace/image/baseline/block_loops.hpp>
#include <millrace/image/baseline/inverse_dct_avx2.hpp>
#include <millrace/image/baseline/plane_region.hpp>
#include <millrace/image/baseline/reduced_dct_avx2.hpp>
#include <millrace/image/baseline/segment_slots.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The functions that suit the processor. All choices give the same planes.
struct plane_tools {
  block_loops loops = block_loops::portable();
  using inverse_dct_of_pair = bool (*)(std::int16_t*, const dequantiser&, sample_target) noexcept;
  /// Inverse DCTs to blocks of 1, 2, 4 and 8 samples on a side. All of them leave zeros where the coefficients were.
  std::array<inverse_dct_of_pair, 4> inverse_dct{reduced_dct::one, reduced_dct::two, reduced_dct::four,
                                                 inverse_dct_pair};
  stop_table stop{};

  void take_best() noexcept {
    loops = block_loops::best();
#ifdef __x86_64__
    if (!avx2_inverse_dct::usable()) return;
    inverse_dct = {reduced_dct::one, avx2_reduced_dct::two, avx2_reduced_dct::four, avx2_inverse_dct::pair};
    if (avx2_inverse_dct::has_more_registers()) inverse_dct[3] = avx2_inverse_dct::pair_in_more_registers;
    if (avx2_inverse_dct::has_vnni()) inverse_dct[3] = avx2_inverse_dct::pair_by_vnni;
#endif
  }
};

class plane_job {
 public:
  void begin(const jpeg_planes_request& ask, component_table_store& store, const plane_tools& tools) {
    result_ = {};
    finished_ = false;
    if (const auto why = open(ask, store); why != jpeg_refusal::none) return refuse(why);
    next_segment(tools);
  }

  bool finished() const noexcept { return finished_; }
  const jpeg_planes_result& result() const noexcept { return result_; }
  block_stream& stream() noexcept { return stream_; }

  /// Called when a loop has returned: takes this stream's segment if it has ended, and begins the next one.
  void attend(const plane_tools& tools) {
    if (stream_.at_end()) take_segment(tools);
  }

 private:
  void take_segment(const plane_tools& tools) {
    stream_.end_segment();
    if (stream_.odd || overran()) return refuse(jpeg_refusal::damaged);
    const bool tame = stream_.store ? take_stored(tools) : take_skipped();
    if (!tame) return refuse(jpeg_refusal::wild_values);
    next_segment(tools);
  }

  jpeg_refusal open(const jpeg_planes_request& ask, component_table_store& store) {
    const std::span file(reinterpret_cast<const std::uint8_t*>(ask.bytes.data()), ask.bytes.size());
    if (const auto why = read_scan_header(ask.bytes, header_); why != jpeg_refusal::none) return why;
    if (ask.eighths != 8 && ask.eighths != 4 && ask.eighths != 2 && ask.eighths != 1) return jpeg_refusal::scaled;
    region_ = mcu_region(header_, ask);
    for (std::size_t c = 0; c < static_cast<std::size_t>(header_.components); ++c) {
      tables_[c] = store.get(header_.component[c].dc, header_.component[c].ac);
      if (!tables_[c]) return jpeg_refusal::tables;
      quantiser_[c] = dequantiser(header_.component[c].quantiser);
      block_side_[c] = static_cast<std::size_t>(block_side(header_, c, ask.eighths));
    }
    if (!orderly_ || !slots_.are_of(header_, tables_)) slots_.lay_out(header_, tables_);
    orderly_ = false;
    // Checked before memory is allocated for the pixels that a header promises. Each block takes at least two bits.
    const std::size_t blocks = static_cast<std::size_t>(region_.end_row) * static_cast<std::size_t>(region_.columns) *
                               slots_.blocks_of_mcu();
    if ((file.size() - header_.data_offset_bytes) * 4 < blocks) return jpeg_refusal::damaged;
    result_.planes = lay_out_planes(header_, region_, ask.eighths, plane_memory_);
    unstuff_.begin(file, header_.data_offset_bytes, stream_memory_);
    row_ = column_ = 0;
    intervals_ = 0;
    begin_interval();
    return jpeg_refusal::none;
  }

  void refuse(jpeg_refusal why) noexcept {
    result_ = {why, {}};
    finished_ = true;
  }

  void begin_interval() noexcept {
    predictor_ = {};
    stream_ = {};
    stream_.bit = reinterpret_cast<std::uintptr_t>(unstuff_.begin_of_interval()) * 8;
    left_in_interval_ = header_.restart_interval;
  }

  const std::uint8_t* stream_byte() const noexcept { return reinterpret_cast<const std::uint8_t*>(stream_.bit / 8); }

  /// Returns whether blocks took bits beyond the end of the data. Without a marker the last 16 bytes do not count:
  /// libjpeg may read some bytes more than it needs.
  bool overran() const noexcept {
    if (!unstuff_.ended()) return false;
    constexpr std::uintptr_t libjpeg_reads_ahead_bytes = 16;
    const auto end = reinterpret_cast<std::uintptr_t>(unstuff_.end());
    return stream_.bit > (end - (unstuff_.at_marker() ? 0 : libjpeg_reads_ahead_bytes)) * 8;
  }

  /// Returns whether only padding lies between the stream's position and a marker.
  bool at_marker() noexcept {
    unstuff_.reach(stream_byte(), 64);
    return unstuff_.ended() && unstuff_.at_marker() &&
           reinterpret_cast<std::uintptr_t>(unstuff_.end()) * 8 - stream_.bit < 8;
  }

  void next_segment(const plane_tools& tools) {
    if (row_ == region_.end_row) {
      finished_ = orderly_ = true;
      if (row_ == region_.rows && !at_marker()) refuse(jpeg_refusal::damaged);
      return;
    }
    if (header_.restart_interval > 0 && left_in_interval_ == 0) {
      if (!at_marker() || !unstuff_.next_interval(intervals_ % 8)) return refuse(jpeg_refusal::damaged);
      ++intervals_;
      begin_interval();
    }
    const bool within = row_ >= region_.first_row;
    const bool stored = within && column_ >= region_.first_column && column_ < region_.end_column;
    std::size_t mcus = stored ? slots_.stored_mcus() : slots_.skipped_mcus();
    // MCUs until the next one that is treated in another way. All rows above the region are skipped together.
    std::int64_t until = stored ? region_.end_column - column_ : region_.first_column - column_;
    if (!stored && within && column_ >= region_.end_column) until += region_.columns;
    if (!within) until += std::int64_t{region_.first_row - row_} * region_.columns;
    if (!stored && within && row_ + 1 == region_.end_row && column_ >= region_.end_column)
      until = region_.columns - column_;
    mcus = std::min(mcus, static_cast<std::size_t>(until));
    if (header_.restart_interval > 0) mcus = std::min<std::size_t>(mcus, left_in_interval_);
    mcus_ = mcus;
    left_in_interval_ -= static_cast<unsigned>(mcus);
    const std::size_t blocks = mcus * slots_.blocks_of_mcu();
    unstuff_.reach(stream_byte(), blocks * max_block_bytes + 16);
    stream_.begin_segment(stored ? slots_.stored() : slots_.skipped(), blocks, stored, tools.stop);
  }

  bool take_skipped() noexcept {
    const block_slot* slot = slots_.skipped();
    const std::size_t blocks = slots_.blocks_of_mcu();
    std::array<int, max_mcu_blocks> sum{};   // one per block: sums per component would wait for one another
    for (std::size_t m = 0; m < mcus_; ++m)
      for (std::size_t b = 0; b < blocks; ++b, ++slot) sum[b] += difference_at(slot->begin_bit, *slot->tables);
    for (std::size_t b = 0; b < blocks; ++b) predictor_[slots_.component_of(b)] += sum[b];
    column_ += static_cast<int>(mcus_);
    row_ += column_ / region_.columns;
    column_ %= region_.columns;
    return std::all_of(predictor_.begin(), predictor_.end(), [](int p) { return std::abs(p) <= 32'767; });
  }

  static int difference_at(std::uintptr_t bit, const component_tables& tables) noexcept {
    const std::uint64_t window = window_at(bit);
    const coefficient_entry& e = tables.difference[window >> (64 - difference_index_bits)];
    if (__builtin_expect(e.bits != 0, 1)) return portable_steps::value(window, e);
    const auto [length, size] = tables.dc_code.find(window);
    return size == 0 ? 0 : extended(static_cast<unsigned>(window << length >> (64 - size)), size);
  }

  bool take_stored(const plane_tools& tools) noexcept {
    bool tame = true;
    for (std::size_t c = 0; c < static_cast<std::size_t>(header_.components); ++c) {
      const int largest = quantiser_[c].largest_dc;
      int dc = predictor_[c];
      unsigned highest = 0;
      for (std::int16_t* const coefficients : slots_.stored_of(c, mcus_)) {
        dc += coefficients[0];
        coefficients[0] = static_cast<std::int16_t>(dc);
        highest = std::max(highest, static_cast<unsigned>(dc + largest));   // a negative sum becomes a huge number
      }
      predictor_[c] = dc;
      tame = tame && highest <= 2 * static_cast<unsigned>(largest);
    }
    if (!tame) return false;
    slots_.for_each_row(mcus_, [&](const row_of_pairs& r) {
      const scan_component& k = header_.component[r.component];
      const plane_view& plane = result_.planes.component[r.component];
      const auto x = static_cast<std::size_t>((column_ - region_.first_column) * k.horizontal);
      const auto y = static_cast<std::size_t>((row_ - region_.first_row) * k.vertical + r.block_row);
      const std::size_t side = block_side_[r.component];
      sample_target to{const_cast<std::uint8_t*>(plane.data) + side * (y * plane.stride_bytes + x),
                       plane.stride_bytes};
      const auto transform = tools.inverse_dct[static_cast<std::size_t>(std::countr_zero(side))];
      std::int16_t* coefficients = r.coefficients;
      for (std::size_t i = 0; i < r.count; ++i, coefficients += pair_coefficients, to.samples += 2 * side)
        tame = transform(coefficients, quantiser_[r.component], to) && tame;
    });
    column_ += static_cast<int>(mcus_);
    row_ += column_ / region_.columns;
    column_ %= region_.columns;
    return tame;
  }

  scan_header header_;
  mcu_region region_;
  segment_slots::tables_of_components tables_;
  std::array<dequantiser, 3> quantiser_;
  std::array<std::size_t, 3> block_side_{};
  segment_slots slots_;
  unstuffer unstuff_;
  block_stream stream_;
  byte_memory stream_memory_, plane_memory_;
  std::array<int, 3> predictor_{};
  unsigned left_in_interval_ = 0, intervals_ = 0;
  int row_ = 0, column_ = 0;      // position of the segment's first MCU
  std::size_t mcus_ = 0;          // MCUs of the segment
  bool finished_ = true;
  bool orderly_ = false;          // the last picture was decoded to its end, and the slots are as lay_out() left them
  jpeg_planes_result result_;
};

}}}  // namespace millrace::detail
