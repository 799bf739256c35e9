// Definitions for picture.hpp.
#pragma once

#include <millrace/image/picture/picture.hpp>

#include <millrace/image/render/picture_renderer.hpp>
#include <millrace/item/record.hpp>

#include <algorithm>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE picture::picture(bytes data, const jpeg_options& options)
    : data_(std::move(data)), guard_(data_), file_{.format = &detail::jpeg_format, .header = {}, .options = options} {
  try {
    file_.header = read_jpeg_header(data_, options.accept_damaged);
  } catch (error& e) {
    e.locate(detail::location_of(data_));
    throw;
  }
  start_plan();
}

MILLRACE_INLINE picture::picture(bytes data, const detail::picture_file& file)
    : data_(std::move(data)), guard_(data_), file_(file) {
  start_plan();
}

MILLRACE_INLINE void picture::start_plan() {
  const std::uint64_t pixels = std::uint64_t{file_.header.width} * file_.header.height;
  if (pixels > file_.options.limits.max_pixels)
    throw data_error("the image's header declares too many pixels: got " +
                         size_text(file_.header.width, file_.header.height) +
                         ", expected at most max_pixels = " + std::to_string(file_.options.limits.max_pixels),
                     "Raise max_pixels if you expect images of this size", where());
  columns_ = detail::plan_axis(static_cast<std::int64_t>(file_.header.width));
  rows_ = detail::plan_axis(static_cast<std::int64_t>(file_.header.height));
  if (file_.options.apply_orientation) orient(file_.header.orientation);
}

MILLRACE_INLINE geometry picture::geometry() const noexcept {
  return {{.rows = rows_, .columns = columns_, .transposed = transposed_, .padding = padding_.mode},
          {.width = file_.header.width, .height = file_.header.height},
          file_.options.apply_orientation ? file_.header.orientation : 1};
}

MILLRACE_INLINE void picture::crop_here(const crop_box& box) {
  const bool inside = box.width > 0 && box.height > 0 && box.left <= width() && box.width <= width() - box.left &&
                      box.top <= height() && box.height <= height() - box.top;
  if (!inside)
    throw data_error("a crop does not fit into the image: got " + size_text(box.width, box.height) + " at (" +
                         std::to_string(box.left) + ", " + std::to_string(box.top) + "), expected a box within " +
                         size_text(width(), height()),
                     "Resize first, or compute the box from width() and height()", where());
  across().crop(static_cast<std::int64_t>(box.left), static_cast<std::int64_t>(box.width));
  down().crop(static_cast<std::int64_t>(box.top), static_cast<std::int64_t>(box.height));
}

MILLRACE_INLINE picture picture::crop(const crop_box& box) const {
  picture next = *this;
  next.crop_here(box);
  return next;
}

MILLRACE_INLINE picture picture::center_crop(std::size_t height, std::size_t width) const {
  const auto now = shape();
  return crop({.left = middle(now[1], width), .top = middle(now[0], height), .width = width, .height = height});
}

MILLRACE_INLINE void picture::resize_here(std::size_t height, std::size_t width) {
  constexpr auto most = static_cast<std::size_t>(detail::plan_axis::max_length);
  if (height < 1 || width < 1 || height > most || width > most)
    throw setup_error("an image cannot be resized to the requested size: got " + size_text(width, height),
                      "Pass a width and a height from 1 to " + std::to_string(most), where());
  if (is_padded()) {
    if (padding_.mode != padding_mode::constant)
      throw setup_error("an image cannot be resized after it was padded with copies of its pixels",
                        "Call resize() before pad(), or pad with a color", where());
    remove_hidden();
  }
  try {
    across().resize(static_cast<std::int64_t>(width));
    down().resize(static_cast<std::int64_t>(height));
  } catch (error& e) {
    e.locate(where());
    throw;
  }
}

MILLRACE_INLINE picture picture::resize(std::size_t height, std::size_t width) const {
  picture next = *this;
  next.resize_here(height, width);
  return next;
}

MILLRACE_INLINE picture picture::resize_shorter(std::size_t side) const {
  const std::size_t h = height(), w = width();
  const std::size_t limited = side < 1'000'000 ? side : 1'000'000;   // resize() rejects more; no product overflows
  return w <= h ? resize(limited * h / w, limited) : resize(limited, limited * w / h);
}

MILLRACE_INLINE picture picture::resize_within(const picture_size& size) const {
  constexpr std::size_t limit = 1'000'000;   // resize() rejects more; no product overflows
  const std::size_t h = height(), w = width();
  const std::size_t max_height = std::min(size.height, limit), max_width = std::min(size.width, limit);
  return h * max_width <= w * max_height ? resize(std::max<std::size_t>(1, max_width * h / w), max_width)
                                         : resize(max_height, std::max<std::size_t>(1, max_height * w / h));
}

MILLRACE_INLINE picture picture::random_resized_crop(picture_size size, rng& random,
                                                     const random_crop_options& options) const {
  picture next = *this;
  next.crop_here(detail::random_crop_box({.width = width(), .height = height()}, random, options));
  next.resize_here(size.height, size.width);
  return next;
}

MILLRACE_INLINE picture picture::random_crop(picture_size size, rng& random) const {
  const std::size_t h = height(), w = width();
  crop_box box{.width = size.width, .height = size.height};
  if (size.height <= h) box.top = random.below(h - size.height + 1);
  if (size.width <= w) box.left = random.below(w - size.width + 1);
  return crop(box);
}

MILLRACE_INLINE void picture::remove_hidden() {
  if (across().remove_hidden() && down().remove_hidden()) return;
  throw data_error("an image cannot be padded or resized if its crop contains only padding",
                   "Crop to a box that contains a part of the image", where());
}

MILLRACE_INLINE void picture::pad_here(const padding_sides& sides, const padding_fill& fill) {
  constexpr auto most = static_cast<std::size_t>(detail::plan_axis::max_length);
  const bool fits = std::max({sides.left, sides.top, sides.right, sides.bottom}) <= most &&
                    width() + sides.left + sides.right <= most && height() + sides.top + sides.bottom <= most;
  if (!fits)
    throw setup_error("a padded image is too large: got " + size_text(width(), height()) + " and padding of " +
                          std::to_string(sides.left) + ", " + std::to_string(sides.top) + ", " +
                          std::to_string(sides.right) + " and " + std::to_string(sides.bottom) +
                          " pixels (left, top, right, bottom), expected sides of at most " + std::to_string(most),
                      "Pad with fewer pixels", where());
  if (sides.left + sides.top + sides.right + sides.bottom == 0) return;
  if (is_padded()) {
    if (!(fill == padding_) || fill.mode != padding_mode::constant)
      throw setup_error("an image cannot have two kinds of padding",
                        "Pad with one constant color, or call pixels() before the second padding", where());
    remove_hidden();
  }
  padding_ = fill;
  across().pad(static_cast<std::int64_t>(sides.left), static_cast<std::int64_t>(sides.right));
  down().pad(static_cast<std::int64_t>(sides.top), static_cast<std::int64_t>(sides.bottom));
}

MILLRACE_INLINE picture picture::pad(const padding_sides& sides, const padding_fill& fill) const {
  picture next = *this;
  next.pad_here(sides, fill);
  return next;
}

MILLRACE_INLINE picture picture::pad_to(const picture_size& size, const padding_fill& fill) const {
  const std::size_t across = std::max(size.width, width()) - width();
  const std::size_t down = std::max(size.height, height()) - height();
  return pad({.left = across / 2, .top = down / 2, .right = across - across / 2, .bottom = down - down / 2}, fill);
}

MILLRACE_INLINE picture picture::crop_beyond(const outer_box& box, const padding_fill& fill) const {
  static constexpr std::int64_t most = std::int64_t{1} << 40;   // pad() rejects more; no sum overflows
  const auto before = [](std::int64_t begin) {
    return static_cast<std::size_t>(-std::clamp<std::int64_t>(begin, -most, 0));
  };
  const auto beyond = [](std::int64_t begin, std::size_t length, std::size_t side) {
    const auto limited = static_cast<std::int64_t>(std::min(length, static_cast<std::size_t>(most)));
    const std::int64_t end = std::clamp(begin, -most, most) + limited;
    return static_cast<std::size_t>(std::max<std::int64_t>(0, end - static_cast<std::int64_t>(side)));
  };
  const padding_sides sides{.left = before(box.left),
                            .top = before(box.top),
                            .right = beyond(box.left, box.width, width()),
                            .bottom = beyond(box.top, box.height, height())};
  picture next = pad(sides, fill);
  next.crop_here({.left = static_cast<std::size_t>(std::max<std::int64_t>(0, box.left)),
                  .top = static_cast<std::size_t>(std::max<std::int64_t>(0, box.top)),
                  .width = box.width,
                  .height = box.height});
  return next;
}

MILLRACE_INLINE picture picture::letterbox(const picture_size& size, const letterbox_options& options) const {
  constexpr std::size_t limit = 1'000'000;   // resize() rejects more; no product overflows
  const std::size_t w = width(), h = height();
  picture next = *this;
  if (options.enlarge || w > size.width || h > size.height) {
    const std::size_t max_width = std::min(size.width, limit), max_height = std::min(size.height, limit);
    const auto scaled = [](std::size_t side, std::size_t to, std::size_t from) {   // at least 1
      const std::size_t quotient = side * to / from, twice_rest = 2 * (side * to % from);
      const bool rounds_up = twice_rest > from || (twice_rest == from && quotient % 2 == 1);
      return std::max<std::size_t>(1, quotient + (rounds_up ? 1 : 0));
    };
    if (h * max_width <= w * max_height) next.resize_here(scaled(h, max_width, w), max_width);
    else next.resize_here(max_height, scaled(w, max_height, h));
  }
  next = next.pad_to(size, {.color = options.color});
  return next;
}

MILLRACE_INLINE picture picture::flip() const {
  picture next = *this;
  next.across().flip();
  return next;
}

namespace detail {

/// Runs two operations in order.
class picture_row_operations final : public row_operation {
 public:
  picture_row_operations(std::shared_ptr<const row_operation> first, std::shared_ptr<const row_operation> then) noexcept
      : first_(std::move(first)), then_(std::move(then)) {}

  void run(const rgb_row& row, scratch& s) const override {
    first_->run(row, s);
    then_->run(row, s);
  }

 private:
  const std::shared_ptr<const row_operation> first_, then_;
};

/// Reduces an axis to the pixels that the padded image shows, and returns their positions.
MILLRACE_INLINE padded_axis render_padded(plan_axis& axis, padding_mode mode) noexcept {
  std::int64_t begin = axis.count, end = 0;   // in source order
  for (std::int64_t k = -axis.before; k < axis.count + axis.after; ++k)
    if (const std::int64_t pixel = padded_pixel(mode, k, axis.count); pixel >= 0) {
      begin = std::min(begin, pixel);
      end = std::max(end, pixel + 1);
    }
  if (begin >= end) begin = 0, end = 1;   // only padding
  padded_axis result{.begin = -axis.before,
                     .end = axis.count + axis.after,
                     .count = axis.count,
                     .rendered_begin = begin,
                     .rendered_end = end};
  if (axis.flipped)
    result = padded_axis{.begin = -axis.after,
                         .end = axis.count + axis.before,
                         .count = axis.count,
                         .rendered_begin = axis.count - end,
                         .rendered_end = axis.count - begin};
  axis.first += begin;
  axis.count = end - begin;
  return result;
}

}   // namespace detail

MILLRACE_INLINE picture picture::apply(std::shared_ptr<const row_operation> operation) const {
  picture next = *this;
  if (next.operation_ && operation)
    next.operation_ = std::make_shared<detail::picture_row_operations>(std::move(next.operation_),
                                                                       std::move(operation));
  else if (operation) next.operation_ = std::move(operation);
  return next;
}

MILLRACE_INLINE void picture::render_together(std::span<const picture* const> pictures,
                                              std::span<const std::span<std::uint8_t>> rows, scratch& s) {
  std::array<detail::picture_job, together> jobs;
  for (std::size_t i = 0; i < pictures.size(); ++i)
    jobs[i] = pictures[i]->job_for(pictures[i]->target_of(rows[i], true));
  detail::render_pictures(std::span(jobs).first(pictures.size()), s);
}

MILLRACE_INLINE image picture::pixels(scratch& s) const {
  image result(shape());
  render_alone(job_for(target_of(result.span(), false)), s);
  return result;
}

MILLRACE_INLINE image picture::pixels() const {
  scratch own;
  return pixels(own);
}

MILLRACE_RARE std::string picture::size_text(std::size_t width, std::size_t height) {
  return std::to_string(width) + " x " + std::to_string(height) + " pixels";
}

MILLRACE_INLINE std::size_t picture::middle(std::size_t total, std::size_t part) noexcept {
  if (part > total) return 0;
  const std::size_t rest = total - part;
  return rest / 2 + (rest % 2 == 1 && rest / 2 % 2 == 1 ? 1 : 0);
}

MILLRACE_INLINE error_location picture::where() const {
  error_location at{.stage = file_.format->name};
  at.complete(detail::location_of(data_));
  return at;
}

MILLRACE_INLINE void picture::orient(int orientation) noexcept {
  transposed_ = orientation >= 5;
  if (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8) columns_.flip();
  if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7) rows_.flip();
}

MILLRACE_INLINE unsigned picture::eighths() const noexcept {
  if (file_.options.quality == picture_quality::exact || !file_.format->decodes_smaller) return 8;
  if (rows_.filter == resize_filter::opencv_linear) return 8;   // decoding at a smaller size would antialias
  for (const unsigned part : {1U, 2U, 4U}) {
    const auto covers = [part](const detail::plan_axis& a) { return a.length * part >= a.target * a.denominator * 8; };
    if (covers(columns_) && covers(rows_)) return part;
  }
  return 8;
}

MILLRACE_INLINE detail::picture_job picture::job_for(const detail::pixel_target& target) const {
  if (!data_.block()) guard_.check(data_, "an image", where());
  detail::picture_job job{.format = file_.format,
                          .data = &data_,
                          .options = &file_.options,
                          .header = &file_.header,
                          .format_options = file_.format_options,
                          .eighths = eighths(),
                          .target = target,
                          .operation = operation_.get()};
  job.plan = detail::resize_plan{.rows = rows_, .columns = columns_, .transposed = transposed_};
  if (job.eighths != 8) job.plan.rows = rows_.scaled(job.eighths), job.plan.columns = columns_.scaled(job.eighths);
  if (is_padded()) {
    auto& [rows, columns, transposed, mode] = job.plan;
    job.padding = detail::padding_of_plan{.across = detail::render_padded(transposed ? rows : columns, padding_.mode),
                                          .down = detail::render_padded(transposed ? columns : rows, padding_.mode),
                                          .fill = padding_};
  }
  return job;
}

MILLRACE_INLINE void picture::render_alone(const detail::picture_job& job, scratch& s) {
  detail::render_pictures({&job, 1}, s);
}

}}   // namespace millrace

#include <millrace/simd/precise_end.inc>
