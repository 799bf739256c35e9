// Computes which MCUs (coding units) of a JPEG overlap a rectangle of pixels, and lays out the planes for their
// samples.
//
//   const mr::detail::mcu_region r(header, request);
//   const int mcus = r.width() * r.height();      // in [r.first_column, r.end_column) x [r.first_row, r.end_row)
//   const mr::detail::jpeg_planes planes = mr::detail::lay_out_planes(header, r, request.eighths, memory);
//
// Planes are consecutive in memory. Rows begin at multiples of 32 bytes. The 64 bytes after each plane are readable.
// Each row has space for one additional block, because blocks are decoded in pairs. At a reduced size, chroma blocks of
// 4:2:0 images have twice the side of luma blocks, as in libjpeg (jdmaster.c).
// Threads: pure functions; any thread.
#pragma once

#include <millrace/image/jpeg/baseline/jpeg_planes.hpp>
#include <millrace/image/jpeg/baseline/unstuffer.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns the side of a component's blocks in samples: 1, 2, 4 or 8.
inline int block_side(const scan_header& h, std::size_t component, int eighths) noexcept {
  const auto& luma = h.component[0];
  const bool twice = component > 0 && luma.horizontal == 2 && luma.vertical == 2 && eighths < 8;
  return twice ? 2 * eighths : eighths;
}

struct mcu_region {
  int columns = 0, rows = 0;   // MCUs of the full image
  int first_column = 0, end_column = 0, first_row = 0, end_row = 0;

  mcu_region() = default;
  mcu_region(const scan_header& h, const jpeg_planes_request& request) noexcept {
    const int across = h.component[0].horizontal, down = h.component[0].vertical;
    columns = (h.width + 8 * across - 1) / (8 * across);
    rows = (h.height + 8 * down - 1) / (8 * down);
    cut(request.left, request.right, request.eighths * across, columns, first_column, end_column);
    cut(request.top, request.bottom, request.eighths * down, rows, first_row, end_row);
    end_row = std::min((end_row + h.rows_together - 1) / h.rows_together * h.rows_together, rows);
  }
  int width() const noexcept { return end_column - first_column; }
  int height() const noexcept { return end_row - first_row; }

 private:
  /// Computes the range [first, end) of MCUs on one axis. The range has at least one MCU, so that an empty rectangle
  /// needs no special case.
  static void cut(std::size_t from, std::size_t to, int size, int count, int& first, int& end) noexcept {
    const auto step = static_cast<std::size_t>(size), last = static_cast<std::size_t>(count - 1);
    first = static_cast<int>(std::min(from / step, last));
    end = std::max(first, static_cast<int>(std::min((std::max<std::size_t>(to, 1) - 1) / step, last))) + 1;
  }
};

inline jpeg_planes lay_out_planes(const scan_header& h, const mcu_region& region, int eighths,
                                  unstuffed_memory& memory) {
  jpeg_planes p;
  const auto& luma = h.component[0];
  const int chroma_size = block_side(h, 1, eighths) / eighths;   // 2 if chroma blocks have twice the side, else 1
  p.components = h.components;
  p.horizontal_sampling = luma.horizontal / chroma_size;
  p.vertical_sampling = luma.vertical / chroma_size;
  p.left = region.first_column * eighths * luma.horizontal;
  p.top = region.first_row * eighths * luma.vertical;
  p.image_width = at_eighths(h.width, eighths);
  p.image_height = at_eighths(h.height, eighths);
  p.repeats_chroma = eighths == 1;
  constexpr std::size_t row_alignment = 32, readable_after = 64;
  std::array<std::size_t, 3> at{};
  std::size_t total = 0;
  const auto count = static_cast<std::size_t>(h.components);
  for (std::size_t c = 0; c < count; ++c) {
    const auto& k = h.component[c];
    const int block_columns = region.width() * k.horizontal, block_rows = region.height() * k.vertical;
    const int side = block_side(h, c, eighths);
    plane_view& plane = p.component[c];
    const std::size_t row_bytes = (static_cast<std::size_t>(block_columns) + 1) * static_cast<std::size_t>(side);
    plane.stride_bytes = (row_bytes + row_alignment - 1) / row_alignment * row_alignment;
    const int left = region.first_column * side * k.horizontal, top = region.first_row * side * k.vertical;
    const int width = (h.width * k.horizontal * side + 8 * luma.horizontal - 1) / (8 * luma.horizontal);
    const int height = (h.height * k.vertical * side + 8 * luma.vertical - 1) / (8 * luma.vertical);
    plane.width = std::min(block_columns * side, width - left);
    plane.height = std::min(block_rows * side, height - top);
    at[c] = total;
    total += plane.stride_bytes * static_cast<std::size_t>(block_rows * side) + readable_after;
  }
  const std::uint8_t* const base = memory.at_least(total);
  for (std::size_t c = 0; c < count; ++c) p.component[c].data = base + at[c];
  return p;
}

}}}   // namespace millrace::detail
