// Definitions for label_map.hpp.
#pragma once

#include <millrace/image/labels/label_map.hpp>

#include <millrace/base/error.hpp>
#include <millrace/image/jpeg/jpeg_header.hpp>
#include <millrace/image/png/png_decoder.hpp>
#include <millrace/image/pnm/pnm.hpp>
#include <millrace/item/record.hpp>
#include <millrace/item/tensor/array.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE void throw_label_error(const bytes& field, const std::string& problem, std::string hint) {
  error_location at{.stage = "labels"};
  at.complete(location_of(field));
  const std::string name = field.name().empty() ? "the bytes" : "the field '" + printable(field.name()) + "'";
  throw data_error(name + " " + problem, std::move(hint), at);
}

MILLRACE_INLINE label_rows rows_in_place(const label_source& from, std::size_t begin, std::size_t, scratch&) {
  const std::size_t stride = from.width * from.sample_bytes;
  return {.data = from.field.data() + from.data_at + begin * stride, .stride_bytes = stride, .first = begin};
}

MILLRACE_INLINE label_source open_pgm_labels(bytes field) {
  const auto header = read_pnm_header(field);
  if (!header)
    throw_label_error(field, "is a PGM with a damaged header",
                      "Write the file again with the header P5, width, height, largest value");
  const pnm_header& h = *header;
  label_source source{.width = h.width,
                      .height = h.height,
                      .sample_bytes = h.sample_bytes(),
                      .big_endian = true,
                      .data_at = h.data_at,
                      .rows_of = rows_in_place};
  const std::size_t available = field.size() - h.data_at;
  if (available != h.data_bytes())
    throw_label_error(field,
                      "is a PGM with the wrong number of bytes: got " + std::to_string(available) +
                          " bytes of pixel data for " + std::to_string(source.width) + " x " +
                          std::to_string(source.height) + " pixels, expected " + std::to_string(h.data_bytes()),
                      "Fetch the file again, or write one map per file if it contains several images");
  source.field = std::move(field);
  return source;
}

MILLRACE_INLINE label_source open_npy_labels(bytes field, std::size_t limit_bytes) {
  const array_layout layout = limit_bytes == 1 ? layout_of<std::uint8_t>(field) : layout_of<std::uint16_t>(field);
  if (layout.shape.size() != 2 || layout.count == 0)
    throw_label_error(field,
                      "is not a label map: got an array of " + std::to_string(layout.shape.size()) +
                          " dimensions and " + std::to_string(layout.count) +
                          " elements, expected [height, width] and at least one element",
                      "Save each map as a two-dimensional array");
  label_source source{.width = layout.shape[1],
                      .height = layout.shape[0],
                      .sample_bytes = limit_bytes,
                      .data_at = static_cast<std::size_t>(layout.payload.data() - field.data()),
                      .rows_of = rows_in_place};
  source.field = std::move(field);
  return source;
}

MILLRACE_INLINE label_source open_labels(bytes field, std::size_t limit_bytes) {
  const std::string_view text = field.text();
  label_source source;
  if (text.starts_with("P5")) source = open_pgm_labels(std::move(field));
  else if (text.starts_with("\x93NUMPY")) source = open_npy_labels(std::move(field), limit_bytes);
  else if (text.starts_with("\x89PNG")) source = open_png_labels(std::move(field));
  else {
    const std::string_view format = text.starts_with("P2") ? "an ASCII PGM" : sniff_format(field);
    throw_label_error(field,
                      "is " + (format.empty() ? "not in a known format" : std::string(format)) +
                          ", expected a label map: a PNG, a binary PGM or a .npy array",
                      "Write the class indices as a PNG, as a binary PGM (P5), or with numpy.save()");
  }
  constexpr std::size_t most = 65'535;
  if (source.width > most || source.height > most)
    throw_label_error(source.field,
                      "is a label map that is too large: got " + std::to_string(source.width) + " x " +
                          std::to_string(source.height) + " pixels, expected at most " + std::to_string(most) +
                          " on each side",
                      "Cut the map and its image into tiles");
  if (source.sample_bytes > limit_bytes)
    throw_label_error(source.field, "is a label map of the wrong element type: got 16 bits, expected 8 bits",
                      "Use label_map<std::uint16_t>, and labels<std::uint16_t>()");
  return source;
}

/// Decodes label maps; reused for all maps.
struct png_label_decoder {
  png_decoder decoder;
  png_memory memory;
};

MILLRACE_INLINE label_rows label_rows_of_png(const label_source& from, std::size_t begin, std::size_t end, scratch& s) {
  auto& [decoder, memory] = s.get<png_label_decoder>();
  const std::size_t stride = from.width * from.sample_bytes;
  std::uint8_t* rows = nullptr;
  try {
    decoder.open(from.field, {.max_pixels = std::uint64_t{from.width} * from.height});
    decoder.expect_rows(end);   // before the allocation, so that a forged size costs no memory
    std::uint8_t* to = rows = memory.at_least((end - begin) * stride);
    const png_region region{.top = begin, .right = from.width, .bottom = end};
    decoder.start(region, {.layout = png_layout::samples});
    for (; to != rows + (end - begin) * stride; to += stride) decoder.next_to(to);
    decoder.finish();
  } catch (error& e) {
    e.locate(location_of(from.field));
    throw;
  }
  s.count(from.sample_bytes > 2 ? "PNGs of 16-bit RGB" : "label maps in PNGs");
  return {.data = reinterpret_cast<const std::byte*>(rows), .stride_bytes = stride, .first = begin};
}

MILLRACE_INLINE label_source open_png_labels(bytes field) {
  png_header header;
  try {
    header = read_png_header(field);
  } catch (error& e) {
    e.locate(location_of(field));
    throw;
  }
  if (header.channels() != 1)
    throw_label_error(field,
                      "is a PNG that is not a label map: got " + std::to_string(header.channels()) +
                          " channels, expected palette indices or gray",
                      header.depth == 16 && header.channels() > 2
                          ? "Use mr::png(field).u16() for 16-bit RGB values, such as optical flow"
                          : "Write one class index per pixel as a palette PNG, or as an 8-bit or 16-bit gray PNG");
  label_source source{.width = header.width,
                      .height = header.height,
                      .sample_bytes = header.depth == 16 ? 2U : 1U,
                      .big_endian = std::endian::native == std::endian::big,
                      .rows_of = label_rows_of_png};
  source.field = std::move(field);
  return source;
}

struct one_byte {
  static unsigned sample(const std::byte* row, std::size_t x) noexcept { return std::to_integer<unsigned>(row[x]); }
};

template <bool BigEndian>
struct png_gray16_label {
  static unsigned sample(const std::byte* row, std::size_t x) noexcept {
    const auto first = std::to_integer<unsigned>(row[2 * x]), second = std::to_integer<unsigned>(row[2 * x + 1]);
    return BigEndian ? first << 8 | second : second << 8 | first;
  }
};

template <class Sample, class T>
void gather_labels(const label_rows& from, const nearest_pixel_grid& grid, bool transposed, T* to) noexcept {
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
  auto& grid = s.get<nearest_pixel_grid>();
  grid.build(plan);
  const auto ignore = static_cast<T>(options.ignore);
  if (!grid.shows_all()) std::fill(row.begin(), row.end(), ignore);
  if (grid.shows_none()) return;
  const auto [top, bottom] = grid.row_range();
  const label_rows from = source.rows_of(source, top, bottom, s);
  if (source.sample_bytes == 1) gather_labels<one_byte>(from, grid, plan.transposed, row.data());
  else if (source.big_endian) gather_labels<png_gray16_label<true>>(from, grid, plan.transposed, row.data());
  else gather_labels<png_gray16_label<false>>(from, grid, plan.transposed, row.data());
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
