// Decodes a JPEG once, and lists its entries: the MCUs (coding units) at which later decoding can begin.
//
//   mr::detail::entry_walk walk;                                   // in a worker's scratch
//   std::vector<std::byte> entries = walk.run(file, {});           // packed; every fourth MCU has an entry
//   decoder.decode({.bytes = file, .left = 200, .entries = entries});
//
// The result is empty in three cases:
// - the built-in decoder does not support the file
// - the file is damaged, at any position: a decoder that skips MCUs would not detect all damage
// - entries have no benefit: the image has too few MCUs, its restart markers suffice, or the entries are too large
//
// Errors: throws std::bad_alloc. Threads: one thread at a time.
#pragma once

#include <millrace/image/jpeg/baseline/block_loops.hpp>
#include <millrace/image/jpeg/baseline/mcu_stream.hpp>
#include <millrace/image/jpeg/baseline/packed_entries.hpp>
#include <millrace/image/jpeg/baseline/plane_region.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Options that determine the number of entries of a file.
struct entry_walk_options {
  /// Distance between entries, in MCUs of six blocks. If an MCU has fewer blocks, the distance is proportionally
  /// larger.
  std::size_t every_mcus = 4;
  std::size_t max_per_thousand = 35;   ///< maximum entry bytes per 1000 file bytes; run() drops entries until they fit
  std::ptrdiff_t fewest_entries = 8;   ///< minimum number of entries; a shorter list is discarded
};

class entry_walk {
 public:
  std::vector<std::byte> run(std::span<const std::byte> file, const entry_walk_options& options) {
    if constexpr (std::endian::native != std::endian::little) return {};
    if (stream_.read_header(file, store_) != jpeg_refusal::none) return {};
    const scan_header& header = stream_.header();
    const mcu_region image(header, {});
    const std::int64_t mcus = std::int64_t{image.columns} * image.rows;
    const std::size_t blocks = stream_.slots().blocks_of_mcu();
    if (stream_.coded_bytes() * 4 / blocks < static_cast<std::size_t>(mcus)) return {};
    const auto every = static_cast<std::int64_t>(std::min(options.every_mcus, max_between) * max_mcu_blocks / blocks);
    if (every < 1 || (header.restart_interval > 0 && header.restart_interval <= 2 * every)) return {};
    if ((mcus - 1) / every < options.fewest_entries || !list(mcus, every)) return {};
    packed_entries_file of{.file_bytes = file.size(), .data_offset_bytes = header.data_offset_bytes, .mcus = mcus};
    for (std::int64_t between = every; between <= 255; between *= 2) {
      if (between > every) drop_every_second();
      if (std::ssize(entries_) < options.fewest_entries) break;
      of.every = static_cast<unsigned>(between);
      auto packed = pack_entries(entries_, of);
      if (packed.size() * 1'000 <= file.size() * options.max_per_thousand) return packed;
    }
    return {};
  }

 private:
  static constexpr std::size_t max_between = 255;

  /// Lists the entries of all MCUs whose number is a positive multiple of `every`. Returns false if the file is
  /// damaged.
  bool list(std::int64_t mcus, std::int64_t every) {
    entries_.clear();
    stream_.begin_scan();
    begin_counting();
    for (std::int64_t mcu = 0; mcu < mcus;) {
      if (stream_.interval_has_ended()) {
        if (!stream_.begin_next_interval()) return false;
        begin_counting();
      }
      if (mcu > 0 && mcu % every == 0) entries_.push_back(entry_here(mcu));
      const std::int64_t until = std::min(every - mcu % every, mcus - mcu);
      mcu += static_cast<std::int64_t>(stream_.begin_segment(static_cast<std::size_t>(until), false, stop_));
      loops_.run(stream_.blocks());
      if (!stream_.end_segment() || !stream_.add_skipped_differences()) return false;
    }
    if (!stream_.at_marker()) return false;
    stream_.end_scan();
    return true;
  }

  void begin_counting() noexcept {
    counted_ = stream_.copied().begin_of_interval();
    stuffed_bytes_ = {};
  }

  /// Returns the entry at the current position. Each 0xff of the copied bytes is followed by a stuffed zero in the
  /// file. Therefore these zeros are added to the offset in the file.
  jpeg_entry entry_here(std::int64_t mcu) {
    const unstuffer& copied = stream_.copied();
    const std::uint8_t* const here = stream_.stream_byte();
    stuffed_bytes_ += std::count(counted_, here, std::uint8_t{0xff});
    counted_ = here;
    const std::ptrdiff_t offset = copied.source_of_interval() - stream_.file().data() +
                                  (here - copied.begin_of_interval()) + stuffed_bytes_;
    return {.mcu = mcu,
            .offset_bytes = static_cast<std::size_t>(offset),
            .bit = static_cast<unsigned>(stream_.blocks().bit % 8),
            .dc = stream_.predictors()};
  }

  /// Drops every second entry.
  void drop_every_second() {
    std::size_t count = 0;
    for (std::size_t i = 1; i < entries_.size(); i += 2) entries_[count++] = entries_[i];
    entries_.resize(count);
  }

  component_table_store store_;
  block_loops loops_ = block_loops::best();
  stop_table stop_;
  mcu_stream stream_;
  std::vector<jpeg_entry> entries_;
  const std::uint8_t* counted_ = nullptr;   // position up to which stuffed bytes are counted
  std::ptrdiff_t stuffed_bytes_ = 0;        // number of stuffed bytes before counted_, in this restart interval
};

}}}   // namespace millrace::detail
