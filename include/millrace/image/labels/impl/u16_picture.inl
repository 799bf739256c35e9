// Definitions for u16_picture.hpp.
#pragma once

#include <millrace/image/labels/u16_picture.hpp>

#include <millrace/base/error.hpp>
#include <millrace/image/labels/label_map.hpp>
#include <millrace/image/png/png_decoder.hpp>
#include <millrace/item/record.hpp>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE u16_picture::u16_picture(const picture& plan) : guard_(plan.guard_), geometry_(plan.geometry()) {
  const auto refuse_plan = [&](const char* what, const char* hint) {
    throw setup_error(std::string("an image of 16-bit samples cannot have ") + what, hint, plan.where());
  };
  if (std::string_view(plan.file_.format->name) != "png")
    throw data_error("the file cannot be read as 16-bit RGB: got the format " + std::string(plan.file_.format->name) +
                         ", expected a PNG of 16-bit RGB",
                     "Use mr::png(), or write the values as a 16-bit RGB PNG", plan.where());
  if (plan.operation_)
    refuse_plan("operations on its pixels, such as a photometric_plan", "Call u16() on a plan of crops and flips");
  if (plan.file_.format_options != 0) refuse_plan("a background", "Leave png_options::background empty");
  const detail::png_header header = detail::read_png_header(plan.data_,
                                                            {.max_pixels = plan.file_.options.limits.max_pixels});
  if (header.depth != 16 || header.channels() < 3)
    throw data_error("the PNG is not 16-bit RGB: got " + std::to_string(header.channels()) + " channels of " +
                         std::to_string(header.depth) + " bits, expected 3 or 4 channels of 16 bits",
                     header.channels() == 1 ? "Use mr::labels<std::uint16_t>() for gray or palette PNGs"
                     : header.depth == 8    ? "Leave out u16() for 8-bit images"
                                            : "Write the values as a 16-bit RGB PNG",
                     plan.where());
  source_ = detail::label_source{.field = plan.data_,
                                 .width = header.width,
                                 .height = header.height,
                                 .sample_bytes = 2 * header.channels(),
                                 .rows_of = detail::label_rows_of_png};
}

MILLRACE_INLINE error_location u16_picture::where() const {
  error_location at{.stage = "png"};
  at.complete(detail::location_of(data()));
  return at;
}

MILLRACE_INLINE u16_picture u16_picture::apply(const millrace::geometry& g) const {
  const picture_size expected = g.source();
  if (source_.width != expected.width || source_.height != expected.height)
    throw data_error("the 16-bit image differs in size from the image whose geometry apply() received: got " +
                         std::to_string(source_.width) + " x " + std::to_string(source_.height) + " pixels, expected " +
                         std::to_string(expected.width) + " x " + std::to_string(expected.height),
                     "Write the 16-bit image in the size of that image before any crop, resize or EXIF rotation",
                     where());
  u16_picture next = *this;
  next.geometry_ = g;
  return next;
}

MILLRACE_INLINE void u16_picture::render(std::span<std::uint16_t> row, scratch& s) const {
  if (row.size() != 3 * geometry_.height() * geometry_.width())
    throw setup_error("the row for a 16-bit image of shape " + to_string(shape()) + " has the wrong size: got " +
                          std::to_string(row.size()) + " elements, expected height * width * 3",
                      "Pass a row of that size", where());
  if (!data().block()) guard_.check(data(), "an image", where());
  auto& grid = s.get<detail::nearest_pixel_grid>();
  const detail::resize_plan& plan = geometry_.plan();
  grid.build(plan);
  if (!grid.shows_all()) std::fill(row.begin(), row.end(), std::uint16_t{0});
  if (grid.shows_none()) return;
  const auto [top, bottom] = grid.row_range();
  const detail::label_rows from = source_.rows_of(source_, top, bottom, s);
  // The distances between the outputs of two columns, and of two rows.
  const std::size_t across = plan.transposed ? grid.rows.size() : 1, down = plan.transposed ? 1 : grid.columns.size();
  for (std::size_t y = grid.shown_rows.begin; y < grid.shown_rows.end; ++y) {
    const std::byte* const stored = from.data + (grid.rows[y] - from.first) * from.stride_bytes;
    for (std::size_t x = grid.shown_columns.begin; x < grid.shown_columns.end; ++x)
      std::memcpy(&row[3 * (y * down + x * across)], stored + source_.sample_bytes * grid.columns[x],
                  3 * sizeof(std::uint16_t));
  }
}

MILLRACE_INLINE detail::channel_scale detail::u16_scale_of(const sample_normalization& by, std::size_t channel) {
  const double mean = by.mean[channel], deviation = by.std[channel];
  const channel_scale result{static_cast<float>(1 / deviation), static_cast<float>(-mean / deviation)};
  const float largest = __builtin_fmaf(65'535.0F, result.scale, result.bias);
  const auto is_finite = [](float x) { return __builtin_isfinite(x) != 0; };
  if (!(deviation > 0) || !is_finite(result.scale) || !is_finite(result.bias) || !is_finite(largest))
    throw setup_error("the normalization of 16-bit values is invalid: got mean " + std::to_string(mean) + " and std " +
                          std::to_string(deviation) + " in channel " + std::to_string(channel),
                      "Set a finite mean and a finite std above 0, in units of pixel values (0 to 65535)");
  return result;
}

}}   // namespace millrace

#include <millrace/simd/precise_end.inc>
