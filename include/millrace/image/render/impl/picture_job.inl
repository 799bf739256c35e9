// Definitions for picture_job.hpp.
#pragma once

#include <millrace/image/render/picture_job.hpp>

#include <millrace/base/error.hpp>
#include <millrace/image/plan/row_operation.hpp>
#include <millrace/image/resize/plane_resizer.hpp>
#include <millrace/item/record.hpp>
#include <millrace/measure/values/event_names.hpp>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE void render_pictures(std::span<const picture_job> jobs, scratch& s) {
  const auto is_like_first = [&](const picture_job& job) { return job.format == jobs.front().format; };
  if (std::all_of(jobs.begin(), jobs.end(), is_like_first)) {
    if (!jobs.empty()) jobs.front().format->render(jobs, s);
    return;
  }
  std::vector<picture_job> alike;
  for (std::size_t first = 0; first < jobs.size(); ++first) {
    const auto has_format = [&](const picture_job& job) { return job.format == jobs[first].format; };
    if (std::any_of(jobs.begin(), jobs.begin() + static_cast<std::ptrdiff_t>(first), has_format)) continue;
    alike.clear();
    std::copy_if(jobs.begin() + static_cast<std::ptrdiff_t>(first), jobs.end(), std::back_inserter(alike), has_format);
    jobs[first].format->render(alike, s);
  }
}

MILLRACE_INLINE void picture_group::clear() noexcept {
  jobs_.clear();
  changes_.clear();
}

MILLRACE_INLINE void picture_group::add(const picture_job& job) { jobs_.push_back(job); }

MILLRACE_INLINE void picture_group::add_change(void (*change)(const void* item, void* row) noexcept, const void* item,
                                               void* row) {
  changes_.push_back({change, item, row});
}

MILLRACE_INLINE void picture_group::render(scratch& s) const {
  render_pictures(jobs_, s);
  for (const row_change& c : changes_) c.change(c.item, c.row);
}

MILLRACE_INLINE picture_group::picture_group() = default;

MILLRACE_INLINE picture_group::~picture_group() = default;

}}}   // namespace millrace::detail

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

namespace row_finishing {

MILLRACE_INLINE std::size_t height_of(const picture_job& job) noexcept {
  return static_cast<std::size_t>(job.padding           ? job.padding->down.size()
                                  : job.plan.transposed ? job.plan.columns.count
                                                        : job.plan.rows.count);
}

MILLRACE_INLINE std::size_t width_of(const picture_job& job) noexcept {
  return static_cast<std::size_t>(job.padding           ? job.padding->across.size()
                                  : job.plan.transposed ? job.plan.rows.count
                                                        : job.plan.columns.count);
}

/// Returns whether the image is rendered into its place among the padding.
MILLRACE_INLINE bool is_rendered_in_place(const padding_of_plan& p) noexcept {
  return p.across.contains_rendered() && p.down.contains_rendered();
}

/// Returns the offset of the first position that shows the image.
MILLRACE_INLINE std::size_t offset_of_image(const padded_axis& axis) noexcept {
  return static_cast<std::size_t>(std::max<std::int64_t>(0, -axis.begin));
}

/// Fills the padding of `row`. If the image is not rendered in place, `rendered` contains it, and is copied too.
MILLRACE_INLINE void pad(const rgb_row& row, const padding_of_plan& p, const std::uint8_t* rendered) noexcept {
  const auto& [across, down, fill] = p;
  const auto rendered_width = static_cast<std::size_t>(across.rendered_end - across.rendered_begin);
  const std::size_t left = offset_of_image(across), top = offset_of_image(down);
  const std::size_t stride = rendered ? rendered_width : row.width;
  const std::uint8_t* const image = rendered ? rendered : &row.pixels[3 * (top * row.width + left)];
  const auto image_height = static_cast<std::size_t>(down.rendered_end - down.rendered_begin);
  for (std::size_t y = 0; y < row.height; ++y) {
    const std::int64_t from_row = padded_pixel(fill.mode, down.begin + static_cast<std::int64_t>(y), down.count);
    const bool skips_image = !rendered && y >= top && y - top < image_height;
    for (std::size_t x = 0; x < row.width; ++x) {
      if (skips_image && x == left) x += rendered_width;
      if (x == row.width) break;
      const std::int64_t from = padded_pixel(fill.mode, across.begin + static_cast<std::int64_t>(x), across.count);
      const std::uint8_t* pixel = fill.color.data();
      if (from_row >= 0 && from >= 0)
        pixel = image + 3 * (static_cast<std::size_t>(from_row - down.rendered_begin) * stride +
                             static_cast<std::size_t>(from - across.rendered_begin));
      std::copy_n(pixel, 3, &row.pixels[3 * (y * row.width + x)]);
    }
  }
}

/// Returns whether operations can run on the target itself.
MILLRACE_INLINE bool is_dense_u8(const picture_job& job) noexcept {
  return job.target.type == pixel_type::u8 && job.target.patch == 0 &&
         (job.target.row_pixels == 0 || job.target.row_pixels == width_of(job));
}

MILLRACE_INLINE void copy_rows(const rgb_row& from, const pixel_target& to) noexcept {
  for (std::size_t y = 0; y < from.height; ++y)
    std::memcpy(static_cast<std::uint8_t*>(to.data) + 3 * y * to.row_pixels, &from.pixels[3 * y * from.width],
                3 * from.width);
}

MILLRACE_INLINE void copy_patches(const rgb_row& from, const pixel_target& to) noexcept {
  const std::size_t line_bytes = 3 * to.patch, columns = from.width / to.patch;
  const std::uint8_t* line = from.pixels.data();
  for (std::size_t y = 0; y < from.height; ++y) {
    const std::size_t first = y / to.patch * columns * to.patch + y % to.patch;   // in lines of a patch
    std::uint8_t* target = static_cast<std::uint8_t*>(to.data) + first * line_bytes;
    for (std::size_t x = 0; x < columns; ++x, line += line_bytes, target += to.patch * line_bytes)
      std::memcpy(target, line, line_bytes);
  }
}

template <class T>
void write_numbers(const rgb_row& from, const pixel_target& to) noexcept {
  const std::size_t pixels = from.height * from.width;
  auto* const numbers = static_cast<T*>(to.data);
  for (std::size_t c = 0; c < 3; ++c) {
    T of_byte[256];
    for (unsigned value = 0; value < 256; ++value) {
      const auto byte = static_cast<std::uint8_t>(value);
      portable_pixel_numbers::write(&byte, 1, &of_byte[value], {.scale = to.scale[c], .bias = to.bias[c]});
    }
    for (std::size_t i = 0; i < pixels; ++i) numbers[c * pixels + i] = of_byte[from.pixels[3 * i + c]];
  }
}

}   // namespace row_finishing

MILLRACE_INLINE pixel_target row_finisher::target_of(const picture_job& job) {
  pixel_target target = job.target;
  if (!job.operation && !job.padding && target.patch == 0) return target;
  target.cold = false;   // it is read at once
  const std::size_t width = row_finishing::width_of(job);
  if (!row_finishing::is_dense_u8(job)) {
    bytes_.resize(3 * row_finishing::height_of(job) * width);
    target = pixel_target{.data = bytes_.data()};
  }
  if (!job.padding) return target;
  const auto& [across, down, fill] = *job.padding;
  if (!row_finishing::is_rendered_in_place(*job.padding)) {
    rendered_.resize(3 * static_cast<std::size_t>((across.rendered_end - across.rendered_begin) *
                                                  (down.rendered_end - down.rendered_begin)));
    return {.data = rendered_.data()};
  }
  const std::size_t first = row_finishing::offset_of_image(down) * width + row_finishing::offset_of_image(across);
  return {.data = static_cast<std::uint8_t*>(target.data) + 3 * first, .row_pixels = width};
}

MILLRACE_INLINE void row_finisher::finish(const picture_job& job, scratch& s) {
  if (!job.operation && !job.padding && job.target.patch == 0) return;
  const std::size_t height = row_finishing::height_of(job), width = row_finishing::width_of(job);
  const bool is_target = row_finishing::is_dense_u8(job);
  auto* const pixels = is_target ? static_cast<std::uint8_t*>(job.target.data) : bytes_.data();
  const rgb_row row{.pixels = {pixels, 3 * height * width}, .height = height, .width = width};
  if (job.padding)
    row_finishing::pad(row, *job.padding,
                       row_finishing::is_rendered_in_place(*job.padding) ? nullptr : rendered_.data());
  if (job.operation) job.operation->run(row, s);
  if (is_target) return;
  if (job.target.patch > 0) row_finishing::copy_patches(row, job.target);
  else if (job.target.type == pixel_type::u8) row_finishing::copy_rows(row, job.target);
  else if (job.target.type == pixel_type::f32) row_finishing::write_numbers<float>(row, job.target);
  else if (job.target.type == pixel_type::f16) row_finishing::write_numbers<f16>(row, job.target);
  else row_finishing::write_numbers<bf16>(row, job.target);
}

}}}   // namespace millrace::detail

#include <millrace/simd/precise_end.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The working memory of a thread that renders rows.
struct row_renderer {
  plane_resizer resizer;
  row_finisher finisher;
};

/// Replaces the colors of rows with alpha by the values that a job renders.
MILLRACE_INLINE void use_row_alpha(std::span<std::uint8_t> rgba, alpha_use use) noexcept {
  for (std::size_t x = 0; x < rgba.size(); x += 4)
    for (std::size_t c = 0; c < 3; ++c) {
      const unsigned alpha = rgba[x + 3], product = rgba[x + c] * alpha + 128;
      rgba[x + c] = static_cast<std::uint8_t>(use == alpha_use::alone ? alpha : ((product >> 8) + product) >> 8);
    }
}

/// The decoded rows of a box that several jobs share.
class buffered_picture_rows final : public picture_job_rows {
 public:
  static constexpr std::size_t max_bytes = std::size_t{64} << 20;

  static bool fits(const plane_box& box) noexcept {
    return (box.right - box.left) * (box.bottom - box.top) <= max_bytes / 4;
  }

  /// Decodes the box.
  void decode(const plane_box& box, picture_job_rows& from) {
    box_ = box;
    const std::size_t row_bytes = 4 * (box.right - box.left);
    rgba_.resize(row_bytes * (box.bottom - box.top));
    from.start(box);
    for (std::size_t at = 0; at < rgba_.size(); at += row_bytes) from.next({&rgba_[at], row_bytes});
  }

  void start(const plane_box& box) override {
    next_ = &rgba_[4 * ((box.top - box_.top) * (box_.right - box_.left) + box.left - box_.left)];
  }
  void next(std::span<std::uint8_t> rgbx) override {
    std::memcpy(rgbx.data(), next_, rgbx.size());
    next_ += 4 * (box_.right - box_.left);
  }

 private:
  plane_box box_{};
  std::vector<std::uint8_t> rgba_;
  const std::uint8_t* next_ = nullptr;
};

MILLRACE_INLINE bool is_of_same_file(const picture_job& a, const picture_job& b) noexcept {
  return a.data->data() == b.data->data() && a.data->size() == b.data->size() && a.format_options == b.format_options;
}

/// Decodes the smallest box that contains the boxes of all jobs of a file. Returns false if each job must be decoded
/// alone.
MILLRACE_INLINE bool decode_shared(std::span<const picture_job* const> jobs, row_decoder& from,
                                   buffered_picture_rows& to) {
  const picture_job& first = *jobs.front();
  const plane_size size{.width = first.header->width, .height = first.header->height};
  plane_box all{.left = size.width, .top = size.height};
  bool with_alpha = false;
  for (const picture_job* job : jobs) {
    const plane_box box = resize_source_box(job->plan, size);
    all = plane_box{.left = std::min(all.left, box.left),
                    .top = std::min(all.top, box.top),
                    .right = std::max(all.right, box.right),
                    .bottom = std::max(all.bottom, box.bottom)};
    with_alpha = with_alpha || job->alpha != alpha_use::ignored;
  }
  if (!buffered_picture_rows::fits(all)) return false;
  try {
    from.open(first, with_alpha);
    to.decode(all, from);
    from.finish();
    return true;
  } catch (const data_error&) {   // the damage may be outside the boxes of some jobs
    return false;
  }
}

MILLRACE_INLINE void render_rows(const picture_job& job, picture_job_rows& rows, scratch& s) {
  auto& [resizer, finisher] = s.get<row_renderer>();
  resizer.start({.plan = job.plan, .fast = false, .target = finisher.target_of(job)});
  const plane_box box{.left = resizer.columns().source_begin(),
                      .top = resizer.rows().source_begin(),
                      .right = resizer.columns().source_end(),
                      .bottom = resizer.rows().source_end()};
  rows.start(box);
  resizer.set_source(box.left, box.right - box.left);
  while (resizer.wants_rows()) {
    const std::span row(resizer.next_row(), 4 * (box.right - box.left));
    rows.next(row);
    if (job.alpha != alpha_use::ignored) use_row_alpha(row, job.alpha);
    resizer.commit_row();
  }
  finisher.finish(job, s);
}

MILLRACE_INLINE void render_each(std::span<const picture_job> jobs, row_decoder& from, scratch& s) {
  std::vector<const picture_job*> alike;
  std::uint64_t shared = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto is_like_this = [&](const picture_job& other) { return is_of_same_file(other, jobs[i]); };
    if (std::any_of(jobs.begin(), jobs.begin() + static_cast<std::ptrdiff_t>(i), is_like_this)) continue;
    alike.clear();
    for (const picture_job& job : jobs.subspan(i))
      if (is_like_this(job)) alike.push_back(&job);
    try {
      auto& buffer = s.get<buffered_picture_rows>();
      if (alike.size() > 1 && decode_shared(alike, from, buffer)) {
        for (const picture_job* job : alike) render_rows(*job, buffer, s);
        shared += alike.size() - 1;
        continue;
      }
      for (const picture_job* job : alike) {
        from.open(*job, job->alpha != alpha_use::ignored);
        render_rows(*job, from, s);
        from.finish();
      }
    } catch (error& e) {
      e.locate(location_of(*jobs[i].data));
      throw;
    }
  }
  s.count(text_of(event_name::shared), shared);
}

}}}   // namespace millrace::detail
