// Definitions for label_map.hpp.
#pragma once

#include <millrace/image/labels/label_map.hpp>

#include <millrace/base/error.hpp>
#include <millrace/item/record.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

struct one_byte {
  static unsigned sample(const std::byte* row, std::size_t x) noexcept { return std::to_integer<unsigned>(row[x]); }
};

template <bool BigEndian>
struct two_bytes {
  static unsigned sample(const std::byte* row, std::size_t x) noexcept {
    const auto first = std::to_integer<unsigned>(row[2 * x]), second = std::to_integer<unsigned>(row[2 * x + 1]);
    return BigEndian ? first << 8 | second : second << 8 | first;
  }
};

template <class Sample, class T>
void gather_labels(const label_rows& from, const nearest_grid& grid, bool transposed, T* to) noexcept {
  const auto row_of = [&](std::uint32_t y) { return from.data + (y - from.first) * from.stride_bytes; };
  const auto [top, bottom] = grid.shown_rows;
  const auto [left, right] = grid.shown_columns;
  const std::size_t rows = grid.rows.size(), columns = grid.columns.size();
  if (transposed) {
    for (std::size_t y = top; y < bottom; ++y) {
      const std::byte* const row = row_of(grid.rows[y]);
      for (std::size_t x = left; x < right; ++x)
        to[x * rows + y] = static_cast<T>(Sample::sample(row, grid.columns[x]));
    }
    return;
  }
  to += top * columns;
  for (std::size_t y = top; y < bottom; ++y, to += columns) {
    if (y > top && grid.rows[y] == grid.rows[y - 1]) {
      std::memcpy(to, to - columns, columns * sizeof(T));
      continue;
    }
    const std::byte* const row = row_of(grid.rows[y]);
    for (std::size_t x = left; x < right; ++x) to[x] = static_cast<T>(Sample::sample(row, grid.columns[x]));
  }
}

template <class T>
void render_labels(const label_source& source, const resize_plan& plan, const label_options& options, std::span<T> row,
                   scratch& s) {
  auto& grid = s.get<nearest_grid>();
  grid.build(plan);
  const auto ignore = static_cast<T>(options.ignore);
  if (!grid.shows_all()) std::fill(row.begin(), row.end(), ignore);
  if (grid.shows_none()) return;
  const auto [top, bottom] = grid.row_range();
  const label_rows from = source.rows_of(source, top, bottom, s);
  if (source.sample_bytes == 1) gather_labels<one_byte>(from, grid, plan.transposed, row.data());
  else if (source.big_endian) gather_labels<two_bytes<true>>(from, grid, plan.transposed, row.data());
  else gather_labels<two_bytes<false>>(from, grid, plan.transposed, row.data());
  if (!options.classes) return;
  for (T& label : row) label = label < *options.classes ? label : ignore;
}

MILLRACE_INLINE label_plan::label_plan(bytes field, std::size_t element_bytes, const label_options& options)
    : source_(open_labels(std::move(field), element_bytes)), guard_(source_.field), options_(options) {
  const std::uint32_t most = element_bytes == 1 ? 255 : 65'535;
  if (options.ignore > most)
    throw setup_error("label_options::ignore is out of range: got " + std::to_string(options.ignore) +
                          ", expected at most " + std::to_string(most),
                      "Choose a number that fits the map's elements", {.stage = "labels"});
  geometry_ = geometry({.rows = plan_axis(static_cast<std::int64_t>(source_.height)),
                        .columns = plan_axis(static_cast<std::int64_t>(source_.width))},
                       stored(), 1);
}

MILLRACE_INLINE void label_plan::apply(const geometry& g) {
  const picture_size actual = stored(), expected = g.source();
  if (actual.width == expected.width && actual.height == expected.height) {
    geometry_ = g;
    return;
  }
  const auto text = [](const picture_size& size) {
    return std::to_string(size.width) + " x " + std::to_string(size.height) + " pixels";
  };
  const bool is_rotated = actual.width == expected.height && actual.height == expected.width;
  std::string problem = "is a label map of the wrong size: got " + text(actual) + ", expected " + text(expected) +
                        ", the stored size of its image";
  if (g.orientation() != 1) problem += " before its EXIF orientation " + std::to_string(g.orientation());
  throw_label_error(data(), problem,
                    is_rotated && g.orientation() >= 5
                        ? "Use apply(p.geometry().upright()) if the map was drawn on the rotated image"
                    : is_rotated ? "If the map was drawn on the rotated image, use "
                                   "jpeg(..., {.apply_orientation = true}) and apply(p.geometry().upright())"
                                 : "Write each map in the size of its image");
}

MILLRACE_INLINE void label_plan::check_row(std::size_t count) const {
  if (data().block() && count == geometry_.height() * geometry_.width()) return;
  error_location at{.stage = "labels"};
  at.complete(location_of(data()));
  guard_.check(data(), "a label map", at);
  if (count == geometry_.height() * geometry_.width()) return;
  throw setup_error("the row for a label map of shape " + to_string(shape()) + " has the wrong size: got " +
                        std::to_string(count) + " elements, expected height * width",
                    "Pass a row of that size", at);
}

MILLRACE_INLINE void label_plan::render(std::span<std::uint8_t> row, scratch& s) const {
  check_row(row.size());
  render_labels(source_, geometry_.plan(), options_, row, s);
}

MILLRACE_INLINE void label_plan::render(std::span<std::uint16_t> row, scratch& s) const {
  check_row(row.size());
  render_labels(source_, geometry_.plan(), options_, row, s);
}

}}}   // namespace millrace::detail
