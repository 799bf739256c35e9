// Decodes progressive JPEGs to planes. If has_fast_code() returns true, the decoder is several times as fast as
// libjpeg-turbo. The planes are bit-identical to those of libjpeg-turbo.
//
//   auto& decoder = scratch.get<mr::detail::progressive_decoder>();
//   mr::detail::jpeg_planes_result result = decoder.decode(request);            // see jpeg_planes.hpp
//   if (result) use(result.planes); else by_libjpeg(request, result.refusal);   // `refusal` is the reason
//
// The decoder decodes all scans of the full image, as libjpeg does before it returns the first row. Therefore both
// decoders detect the same damage. Coefficients are stored and transformed only for the requested region. The decoder
// refuses three kinds of files; libjpeg must decode these files:
// - files for which libjpeg might print a warning or compute other values; plane_job.hpp refuses such files too
// - files whose scans omit bits of coefficients; libjpeg smooths such images
// - files that exceed the request's limits for scans or for memory
//
// Lifetime: planes are valid until the next call of the decoder. Errors: throws only std::bad_alloc.
// Threads: one decoder per worker. Source: ITU-T T.81 annex G.
#pragma once

#include <millrace/image/jpeg/baseline/plane_job.hpp>
#include <millrace/image/jpeg/baseline/unstuffer.hpp>
#include <millrace/image/jpeg/progressive/band_stream.hpp>
#include <millrace/image/jpeg/progressive/coefficient_store.hpp>
#include <millrace/simd/cpu_features.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Decodes the AC scans of a progressive JPEG with the loops of band_stream.hpp. The loops are compiled for several
// types of processors; best() returns the loops for the current processor.
//
//   const auto loops = mr::detail::band_loops::best();
//   bool intact = loops.run(scan.refines, stored, stream, blocks);  // false: the data is damaged
//
// The functions of bmi2_bands have an attribute with their instruction set (BMI2). Therefore every build for x86-64
// contains them, even if its compiler flags do not allow BMI2.
// Threads: any; calls share no state.

/// The loops without an instruction-set attribute. `Sets` determines the instructions that they need.
template <class Sets>
struct plain_bands {
  template <bool store>
  static bool first(band_stream& s, const block_run& run) {
    return decode_first<Sets, store>(s, run);
  }
  template <bool store>
  static bool refinement(band_stream& s, const block_run& run) {
    return decode_refinement<Sets, store>(s, run);
  }
};

#ifdef __x86_64__
struct bmi2_bands {
  template <bool store>
  [[gnu::target("bmi,bmi2,lzcnt,popcnt")]] static bool first(band_stream& s, const block_run& run) {
    return decode_first<deposit_coefficient_sets, store>(s, run);
  }
  template <bool store>
  [[gnu::target("bmi,bmi2,lzcnt,popcnt")]] static bool refinement(band_stream& s, const block_run& run) {
    return decode_refinement<deposit_coefficient_sets, store>(s, run);
  }
};
#endif

class band_loops {
 public:
  static band_loops portable() noexcept { return of<plain_bands<portable_coefficient_sets>>(); }
  static band_loops best() noexcept {
#ifdef __x86_64__
    if (has_fast_code()) return of<bmi2_bands>();
#elif defined __aarch64__
    if (has_fast_code()) return of<plain_bands<deposit_coefficient_sets>>();
#endif
    return portable();
  }

  /// Returns whether the CPU has a fast instruction that moves bits to the positions of a mask (PDEP or BDEP).
  static bool has_fast_code() noexcept { return cpu_has_fast_deposit(); }

  bool run(bool refines, bool stored, band_stream& s, const block_run& blocks) const {
    return loops_[2 * refines + stored](s, blocks);
  }

 private:
  using loop = bool (*)(band_stream&, const block_run&);

  template <class Bands>
  static band_loops of() noexcept {
    band_loops all;
    all.loops_[0] = Bands::template first<false>;
    all.loops_[1] = Bands::template first<true>;
    all.loops_[2] = Bands::template refinement<false>;
    all.loops_[3] = Bands::template refinement<true>;
    return all;
  }

  loop loops_[4] = {};
};

// Copies the data of one scan, one complete restart interval at a time. Omits the zero that a JPEG inserts after each
// 0xff.
// Units: positions are bit addresses, 8 * address + bit. Source: ITU-T T.81 B.1.1.5 and B.2.1.
class progressive_scan_data {
 public:
  void begin(std::span<const std::uint8_t> file, std::size_t offset, unstuffed_memory& memory) {
    file_ = file;
    intervals_ = 0;
    unstuff_.begin(file, offset, memory);
    copy_interval();
  }

  std::uintptr_t begin_bit() const noexcept {
    return reinterpret_cast<std::uintptr_t>(unstuff_.begin_of_interval()) * 8;
  }
  std::uintptr_t end_bit() const noexcept { return reinterpret_cast<std::uintptr_t>(unstuff_.end()) * 8; }

  /// Returns whether only padding separates the position from the next marker.
  bool ends_at(std::uintptr_t bit) const noexcept {
    return unstuff_.at_marker() && bit <= end_bit() && end_bit() - bit < 8;
  }

  /// Returns whether the expected restart marker follows the position. If so, moves to the next interval.
  bool next_interval(std::uintptr_t bit) noexcept {
    if (!ends_at(bit) || !unstuff_.next_interval(intervals_++ % 8)) return false;
    copy_interval();
    return true;
  }

  std::size_t end_offset() const noexcept { return static_cast<std::size_t>(unstuff_.position() - file_.data()); }

 private:
  void copy_interval() noexcept { unstuff_.reach(unstuff_.begin_of_interval(), file_.size()); }

  std::span<const std::uint8_t> file_;
  unstuffer unstuff_;
  unsigned intervals_ = 0;
};

class progressive_decoder {
 public:
  enum class code { best, portable };

  /// `best` selects the fastest code for this processor. `portable` is for tests and produces the same planes.
  MILLRACE_RARE explicit progressive_decoder(code choice = code::best) {
    if (choice == code::portable) return;
    tools_.choose_best();
    loops_ = band_loops::best();
  }

  /// Returns whether this processor has the instructions of the fast code. The portable code is correct, but slower
  /// than libjpeg-turbo.
  static bool has_fast_code() noexcept { return band_loops::has_fast_code(); }

  /// Decodes one image. The planes are valid until the next call.
  jpeg_planes_result decode(const jpeg_planes_request& request) {
    if constexpr (std::endian::native != std::endian::little) return {jpeg_refusal::machine, {}};
    jpeg_planes_result result;
    result.refusal = decode_to(request, result.planes);
    if (!result) result.planes = {};
    return result;
  }

 private:
  jpeg_refusal decode_to(const jpeg_planes_request& request, jpeg_planes& planes) {
    const std::span file(reinterpret_cast<const std::uint8_t*>(request.bytes.data()), request.bytes.size());
    header_ = {};
    progressive_reader reader(file, header_);
    progressive_scan scan;
    bool laid_out = false;
    for (std::size_t at = 2;; at = data_.end_offset()) {
      const auto [outcome, why] = reader.next(at, scan);
      if (outcome == progressive_reader::refused) return why;
      if (outcome == progressive_reader::at_end) break;
      if (reader.scans() > request.max_scans) return jpeg_refusal::limits;
      if (!laid_out)
        if (const auto why_not = lay_out(request); why_not != jpeg_refusal::none) return why_not;
      laid_out = true;
      data_.begin(file, scan.data_offset_bytes, stream_memory_);
      if (const auto why_not = decode_scan(scan); why_not != jpeg_refusal::none) return why_not;
    }
    if (!reader.refined()) return jpeg_refusal::unrefined;
    return transform(request, planes) ? jpeg_refusal::none : jpeg_refusal::wild_values;
  }

  /// Performs all checks before it allocates memory for the pixels that the header declares.
  jpeg_refusal lay_out(const jpeg_planes_request& request) {
    if (request.eighths != 8 && request.eighths != 4 && request.eighths != 2 && request.eighths != 1)
      return jpeg_refusal::scaled;
    region_ = mcu_region(header_, request);
    std::size_t blocks = 0;
    for (std::size_t c = 0; c < static_cast<std::size_t>(header_.components); ++c)
      blocks += static_cast<std::size_t>(header_.component[c].horizontal * header_.component[c].vertical);
    blocks *= static_cast<std::size_t>(region_.columns) * static_cast<std::size_t>(region_.rows);
    if (request.bytes.size() * 8 < blocks) return jpeg_refusal::damaged;   // a DC scan has at least one bit per block
    constexpr std::size_t libjpegs_block_bytes = 128, around_bytes = std::size_t{1} << 20, column_bytes = 256;
    const std::size_t libjpegs_bytes = blocks * libjpegs_block_bytes +
                                       static_cast<std::size_t>(header_.width) * column_bytes + around_bytes;
    if (libjpegs_bytes > request.max_memory_bytes) return jpeg_refusal::limits;
    store_.lay_out(header_, region_);
    return jpeg_refusal::none;
  }

  jpeg_refusal decode_scan(const progressive_scan& scan) {
    const progressive_scan_grid grid(header_, scan);
    return scan.first == 0 ? decode_dc(scan, grid) : decode_band(scan, grid);
  }

  /// Calls begin() at the start of each restart interval. Splits each row of MCUs (coding units) where an interval
  /// ends. For each part, calls part(row, from, to) with its MCUs `from` to `to` - 1.
  template <class Begin, class Part>
  jpeg_refusal for_each_part(const progressive_scan& scan, const progressive_scan_grid& grid, std::uintptr_t& bit,
                             const Begin& begin, const Part& part) {
    bit = data_.begin_bit();
    begin();
    std::size_t left = scan.restart_interval;
    for (std::size_t row = 0; row < grid.rows; ++row)
      for (std::size_t from = 0; from < grid.columns;) {
        std::size_t to = grid.columns;
        if (scan.restart_interval > 0) {
          if (left == 0) {
            if (!data_.next_interval(bit)) return jpeg_refusal::damaged;
            bit = data_.begin_bit();
            begin();
            left = scan.restart_interval;
          }
          to = std::min(to, from + left);
          left -= to - from;
        }
        if (const auto why = part(row, from, to); why != jpeg_refusal::none) return why;
        from = to;
      }
    return data_.ends_at(bit) ? jpeg_refusal::none : jpeg_refusal::damaged;
  }

  jpeg_refusal decode_dc(const progressive_scan& scan, const progressive_scan_grid& grid) {
    for (std::size_t i = 0; !scan.refines && i < scan.components; ++i)
      if (!dc_tables_[i].build(scan.dc[i], {band_kind::dc, scan.low})) return jpeg_refusal::tables;
    dc_scan dc(scan, grid, dc_tables_, store_);
    std::uintptr_t bit = 0;
    return for_each_part(
        scan, grid, bit, [&] { dc.begin_interval(); },
        [&](std::size_t row, std::size_t from, std::size_t to) {
          return dc.decode(bit, data_.end_bit(), row, from, to);
        });
  }

  jpeg_refusal decode_band(const progressive_scan& scan, const progressive_scan_grid& grid) {
    const auto kind = scan.refines ? band_kind::refining_ac : band_kind::first_ac;
    if (!ac_table_.build(scan.ac, {kind, scan.low})) return jpeg_refusal::tables;
    const std::size_t c = scan.component[0];
    band_stream stream{.table = &ac_table_, .first = scan.first, .last = scan.last, .low = scan.low};
    const auto decode = [&](std::size_t row, std::size_t from, std::size_t to, bool stored) {
      return from >= to || loops_.run(scan.refines, stored, stream, store_.run(c, row, from, to));
    };
    return for_each_part(
        scan, grid, stream.bit,
        [&] {
          stream.blocks_passed = 0;
          stream.end_bit = data_.end_bit();
        },
        [&](std::size_t row, std::size_t from, std::size_t to) {
          std::size_t first = to, end = to;   // range of the blocks within the region
          if (store_.row_is_stored(c, row)) {
            first = std::clamp(store_.first_stored_column(c), from, to);
            end = std::clamp(store_.end_stored_column(c), from, to);
          }
          const bool intact = decode(row, from, first, false) && decode(row, first, end, true) &&
                              decode(row, end, to, false);
          return intact ? jpeg_refusal::none : jpeg_refusal::damaged;
        });
  }

  /// Returns false if a value is wild (see baseline/inverse_dct.hpp).
  bool transform(const jpeg_planes_request& request, jpeg_planes& planes) {
    planes = lay_out_planes(header_, region_, request.eighths, plane_memory_);
    std::array<dequantiser, 3> quantiser;
    for (std::size_t c = 0; c < static_cast<std::size_t>(header_.components); ++c)
      quantiser[c] = dequantiser(header_.component[c].quantiser);
    bool tame = true;
    store_.clear_filling(header_);
    store_.for_each_row([&](const stored_coefficient_row& r) {
      const auto side = static_cast<std::size_t>(block_side(header_, r.component, request.eighths));
      const auto inverse_dct = tools_.inverse_dct.pair[static_cast<std::size_t>(std::countr_zero(side))];
      const dequantiser& q = quantiser[r.component];
      const plane_view& plane = planes.component[r.component];
      dct_target to{const_cast<std::uint8_t*>(plane.data) + side * r.row * plane.stride_bytes, plane.stride_bytes};
      std::int16_t* pair = r.coefficients;
      for (std::size_t i = 0; i < r.pairs && tame; ++i, pair += pair_coefficients, to.samples += 2 * side) {
        const int left = pair[0], right = pair[right_block];
        tame = left <= q.largest_dc && left >= -q.largest_dc && right <= q.largest_dc && right >= -q.largest_dc &&
               inverse_dct(pair, q, to);
      }
    });
    if (tame) store_.mark_zeroed();
    return tame;
  }

  plane_tools tools_;
  band_loops loops_ = band_loops::portable();
  scan_header header_;
  mcu_region region_;
  coefficient_store store_;
  progressive_scan_data data_;
  dc_scan::tables dc_tables_;
  band_table ac_table_;
  unstuffed_memory stream_memory_, plane_memory_;
};

}}}   // namespace millrace::detail
