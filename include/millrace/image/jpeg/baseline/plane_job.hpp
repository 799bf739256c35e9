// Decodes one JPEG to planes, segment by segment, so that one thread can decode two JPEGs at the same time.
//
//   mr::detail::plane_tools tools;
//   tools.choose_best();                                 // for this processor
//   mr::detail::plane_job job;
//   job.begin(request, store, tools);
//   while (!job.finished()) { tools.loops.run(job.stream()); job.attend(tools); }
//   const mr::detail::jpeg_planes_result& result = job.result();
//
// The job decodes the MCUs (coding units) from the image's first row to the last requested row. It writes the samples
// of the MCUs within the requested region to the planes. It skips all other MCUs: it only finds their ends. If the file
// has entries (positions where decoding can begin, see jpeg_entry.hpp), the job jumps to the last entry at or before
// the next requested MCU. The job does not detect damage in data that it does not decode. The job refuses an image for
// which libjpeg might print a warning or compute other values. The caller must decode a refused image with libjpeg.
// Lifetime: the request's bytes must outlive the job. The result is valid until the next begin(). Threads: one thread
// at a time.
#pragma once

#include <millrace/image/jpeg/baseline/block_loops.hpp>
#include <millrace/image/jpeg/baseline/dct_kernels.hpp>
#include <millrace/image/jpeg/baseline/mcu_stream.hpp>
#include <millrace/image/jpeg/baseline/packed_entries.hpp>
#include <millrace/image/jpeg/baseline/plane_region.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The functions that decode blocks. The default functions run on any processor; choose_best() selects the fastest ones
/// for this processor. All functions produce the same planes.
struct plane_tools {
  block_loops loops = block_loops::portable();
  dct_kernels inverse_dct;
  stop_table stop{};

  void choose_best() noexcept {
    loops = block_loops::best();
    inverse_dct = dct_kernels::best();
  }
};

class plane_job {
 public:
  void begin(const jpeg_planes_request& request, component_table_store& store, const plane_tools& tools) {
    result_ = {};
    finished_ = false;
    if (const auto why = open(request, store); why != jpeg_refusal::none) return refuse(why);
    next_segment(tools);
  }

  bool finished() const noexcept { return finished_; }
  const jpeg_planes_result& result() const noexcept { return result_; }
  block_stream& stream() noexcept { return stream_.blocks(); }

  /// Must be called after each call of tools.loops.run() with stream(). If the current segment has ended, begins the
  /// next one.
  void attend(const plane_tools& tools) {
    if (stream_.blocks().at_end()) complete_segment(tools);
  }

 private:
  void complete_segment(const plane_tools& tools) {
    if (!stream_.end_segment()) return refuse(jpeg_refusal::damaged);
    const bool tame = stream_.blocks().store ? store(tools) : stream_.add_skipped_differences();
    if (!tame) return refuse(jpeg_refusal::wild_values);
    column_ += static_cast<int>(mcus_);
    row_ += column_ / region_.columns;
    column_ %= region_.columns;
    next_segment(tools);
  }

  jpeg_refusal open(const jpeg_planes_request& request, component_table_store& store) {
    if (const auto why = stream_.read_header(request.bytes, store); why != jpeg_refusal::none) return why;
    if (request.eighths != 8 && request.eighths != 4 && request.eighths != 2 && request.eighths != 1)
      return jpeg_refusal::scaled;
    const scan_header& header = stream_.header();
    region_ = mcu_region(header, request);
    for (std::size_t c = 0; c < static_cast<std::size_t>(header.components); ++c) {
      quantiser_[c] = dequantiser(header.component[c].quantiser);
      block_side_[c] = static_cast<std::size_t>(block_side(header, c, request.eighths));
    }
    // Each coded block has at least two bits. This check refuses a file that is too short for the image size in its
    // header, before memory is allocated.
    const std::size_t blocks = static_cast<std::size_t>(region_.end_row) * static_cast<std::size_t>(region_.columns) *
                               stream_.slots().blocks_of_mcu();
    if (stream_.coded_bytes() * 4 < blocks) return jpeg_refusal::damaged;
    result_.planes = lay_out_planes(header, region_, request.eighths, plane_memory_);
    stream_.begin_scan();
    row_ = column_ = 0;
    has_entries_ = !request.entries.empty() &&
                   entries_.open(request.entries, {.file_bytes = request.bytes.size(),
                                                   .data_offset_bytes = header.data_offset_bytes,
                                                   .mcus = std::int64_t{region_.columns} * region_.rows});
    result_.entries_refused = !request.entries.empty() && !has_entries_;
    may_skip_ = has_entries_ || header.restart_interval > 0;
    return jpeg_refusal::none;
  }

  void refuse(jpeg_refusal why) noexcept {
    result_.refusal = why;
    result_.planes = {};
    result_.entries = entry_origin::none;
    finished_ = true;
  }

  void finish() noexcept {
    finished_ = true;
    stream_.end_scan();
  }

  void next_segment(const plane_tools& tools) {
    if (row_ == region_.end_row) {
      finish();
      if (row_ == region_.rows && !stream_.at_marker()) refuse(jpeg_refusal::damaged);
      return;
    }
    if (may_skip_ && !in_region() && !skip_ahead()) return;
    if (stream_.interval_has_ended() && !stream_.begin_next_interval()) return refuse(jpeg_refusal::damaged);
    const bool within = row_ >= region_.first_row, stored = in_region();
    // The number of MCUs until the mode (store or skip) changes. All rows above the region are skipped together.
    std::int64_t until = stored ? region_.end_column - column_ : region_.first_column - column_;
    if (!stored && within && column_ >= region_.end_column) until += region_.columns;
    if (!within) until += std::int64_t{region_.first_row - row_} * region_.columns;
    if (!stored && within && row_ + 1 == region_.end_row && column_ >= region_.end_column)
      until = region_.columns - column_;
    mcus_ = stream_.begin_segment(static_cast<std::size_t>(until), stored, tools.stop);
  }

  /// Returns whether the next MCU is within the region.
  bool in_region() const noexcept {
    return row_ >= region_.first_row && column_ >= region_.first_column && column_ < region_.end_column;
  }

  /// Jumps to the last entry at or before the next requested MCU, if that entry is ahead of the current position.
  /// Returns false if the job has ended, because no more MCUs are requested or the file is damaged.
  [[gnu::noinline]] bool skip_ahead() noexcept {
    const int row = row_ < region_.first_row ? region_.first_row : row_ + (column_ >= region_.end_column ? 1 : 0);
    if (row == region_.end_row) {
      // With restart markers, the job could end here, before the end of the row. If it has never jumped, it continues,
      // so that restart markers do not change which damage is detected.
      if (!has_entries_ && result_.entries == entry_origin::none) return true;
      if (has_entries_) result_.entries = entry_origin::packed;
      finish();
      return false;
    }
    const bool entered = has_entries_ ? enter_packed(row) : enter_interval(row);
    if (!entered) refuse(jpeg_refusal::damaged);
    return entered;
  }

  /// Jumps to the last packed entry at or before the first requested MCU of a row, if that entry is ahead of the
  /// current position.
  bool enter_packed(int row) noexcept {
    const std::int64_t begin_of_row = std::int64_t{row} * region_.columns, every = entries_.every();
    const std::int64_t number = std::min((begin_of_row + region_.first_column) / every, entries_.last());
    // If all columns are requested, the rows are contiguous and no other jump is needed.
    const bool all_columns = region_.width() == region_.columns;
    const std::int64_t end = all_columns ? std::int64_t{region_.end_row} * region_.columns
                                         : begin_of_row + region_.end_column;
    const std::int64_t next = (end + every - 1) / every;
    jpeg_entry entry;
    const bool ahead = number * every > std::int64_t{row_} * region_.columns + column_;
    if (ahead) entry = entries_.at(number);
    const bool is_last = next > entries_.last();
    stream_.limit(is_last ? stream_.file().size() : static_cast<std::size_t>(entries_.position_bits(next) / 8));
    return !ahead || enter(entry, entry_origin::packed);
  }

  /// Jumps to the restart interval of the first requested MCU of a row, unless this interval is the current one.
  bool enter_interval(int row) noexcept {
    const std::int64_t first_mcu = std::int64_t{row} * region_.columns + region_.first_column;
    const auto number = static_cast<unsigned>(first_mcu / stream_.header().restart_interval);
    if (number == stream_.interval()) return true;
    jpeg_entry entry;
    return stream_.find_interval(number, entry) && enter(entry, entry_origin::restart_markers);
  }

  bool enter(const jpeg_entry& entry, entry_origin origin) noexcept {
    row_ = static_cast<int>(entry.mcu / region_.columns);
    column_ = static_cast<int>(entry.mcu % region_.columns);
    result_.entries = origin;
    return stream_.enter(entry);
  }

  /// Transforms the coefficients of a segment and writes the result to the planes. Returns false if the coefficients
  /// are impossible (jpeg_refusal::wild_values).
  bool store(const plane_tools& tools) noexcept {
    bool tame = true;
    const scan_header& header = stream_.header();
    const segment_slots& slots = stream_.slots();
    for (std::size_t c = 0; c < static_cast<std::size_t>(header.components); ++c) {
      const int largest = quantiser_[c].largest_dc;
      int dc = stream_.predictors()[c];
      unsigned highest = 0;
      for (std::int16_t* const coefficients : slots.stored_of(c, mcus_)) {
        dc += coefficients[0];
        coefficients[0] = static_cast<std::int16_t>(dc);
        highest = std::max(highest, static_cast<unsigned>(dc + largest));   // a negative sum wraps to a huge number
      }
      stream_.predictors()[c] = dc;
      tame = tame && highest <= 2 * static_cast<unsigned>(largest);
    }
    if (!tame) return false;
    slots.for_each_row(mcus_, [&](const segment_slot_pairs& r) {
      const scan_component& k = header.component[r.component];
      const plane_view& plane = result_.planes.component[r.component];
      const auto x = static_cast<std::size_t>((column_ - region_.first_column) * k.horizontal);
      const auto y = static_cast<std::size_t>((row_ - region_.first_row) * k.vertical + r.block_row);
      const std::size_t side = block_side_[r.component];
      dct_target to{const_cast<std::uint8_t*>(plane.data) + side * (y * plane.stride_bytes + x), plane.stride_bytes};
      // Sides are 1, 2, 4 and 8. The mask & 3 proves to the compiler that the index is in range.
      const auto transform = tools.inverse_dct.pair[static_cast<std::size_t>(std::countr_zero(side)) & 3];
      std::int16_t* coefficients = r.coefficients;
      const auto quad = side == 8 ? tools.inverse_dct.quad : nullptr;
      const dequantiser& q = quantiser_[r.component];
      for (std::size_t i = 0, done = 1; i < r.count; i += done) {
        done = quad && i + 1 < r.count ? 2 : 1;
        tame = (done == 2 ? quad : transform)(coefficients, q, to) && tame;
        coefficients += done * pair_coefficients;
        to.samples += done * 2 * side;
      }
    });
    return tame;
  }

  mcu_stream stream_;
  mcu_region region_;
  std::array<dequantiser, 3> quantiser_;
  std::array<std::size_t, 3> block_side_{};
  unstuffed_memory plane_memory_;
  int row_ = 0, column_ = 0;   // position of the segment's first MCU
  std::size_t mcus_ = 0;       // MCUs of the segment
  packed_entries entries_;
  bool has_entries_ = false;   // whether there are packed entries
  bool may_skip_ = false;      // whether there are packed entries or restart markers
  bool finished_ = true;
  jpeg_planes_result result_;
};

}}}   // namespace millrace::detail
