// Definitions for rgba_picture.hpp.
#pragma once

#include <millrace/image/picture/rgba_picture.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail { namespace rgba_pictures {

/// A thread's working memory: RGB rows of colors, each followed by a row of alpha.
struct memory {
  std::vector<picture_job> jobs;
  std::vector<std::uint8_t> rgb;
};

/// Divides premultiplied colors by alpha, with Pillow's rounding.
MILLRACE_INLINE void divide_by_alpha(std::span<std::uint8_t> rgb, std::span<const std::uint8_t> alpha) noexcept {
  for (std::size_t i = 0; i < rgb.size(); ++i)
    if (const unsigned a = alpha[i]; a != 0) rgb[i] = static_cast<std::uint8_t>(std::min(255U, rgb[i] * 255U / a));
}

}}   // namespace detail::rgba_pictures

MILLRACE_INLINE bool rgba_picture::is_resized() const noexcept {
  const auto keeps = [](const detail::plan_axis& axis) { return axis.denominator == 1 && axis.target == axis.length; };
  return !keeps(picture_.columns_) || !keeps(picture_.rows_);
}

MILLRACE_INLINE void rgba_picture::render_together(std::span<const rgba_picture* const> pictures,
                                                   std::span<const std::span<std::uint8_t>> rows, scratch& s) {
  auto& [jobs, rgb] = s.get<detail::rgba_pictures::memory>();
  std::size_t needed = 0;
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    if (rows[i].size() % 4 != 0)
      throw setup_error("the row for an image with alpha has the wrong size: got " + std::to_string(rows[i].size()) +
                            " elements, expected height * width * 4",
                        "Pass a row of that size", pictures[i]->picture_.where());
    needed += rows[i].size() / 4 * 6;
  }
  rgb.resize(needed);
  jobs.clear();
  std::size_t at = 0;
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const picture& p = pictures[i]->picture_;
    const std::size_t bytes = rows[i].size() / 4 * 3;
    const bool has_alpha = p.file_.format->has_alpha;
    for (const detail::alpha_use use : {detail::alpha_use::premultiplied, detail::alpha_use::alone}) {
      const std::span<std::uint8_t> to(rgb.data() + at, bytes);
      at += bytes;
      if (use == detail::alpha_use::alone && !has_alpha) {
        std::fill(to.begin(), to.end(), std::uint8_t{255});
        continue;
      }
      detail::picture_job job = p.job_for(p.target_of(to, false));
      job.operation = nullptr;   // runs later, on colors that are not premultiplied
      const bool weighed = use == detail::alpha_use::alone || pictures[i]->is_resized();
      if (has_alpha) job.alpha = weighed ? use : detail::alpha_use::ignored;
      if (job.padding && use == detail::alpha_use::alone) job.padding->fill.color = {255, 255, 255};
      jobs.push_back(job);
    }
  }
  detail::render_pictures(jobs, s);
  at = 0;
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const picture& p = pictures[i]->picture_;
    const std::size_t pixels = rows[i].size() / 4;
    const std::span<std::uint8_t> colors(rgb.data() + at, 3 * pixels);
    const std::span<const std::uint8_t> alpha(rgb.data() + at + 3 * pixels, 3 * pixels);
    at += 6 * pixels;
    if (pictures[i]->is_resized()) detail::rgba_pictures::divide_by_alpha(colors, alpha);
    if (p.operation_) p.operation_->run({.pixels = colors, .height = p.height(), .width = p.width()}, s);
    for (std::size_t x = 0; x < pixels; ++x) {
      std::copy_n(&colors[3 * x], 3, &rows[i][4 * x]);
      rows[i][4 * x + 3] = alpha[3 * x];
    }
  }
}

MILLRACE_INLINE void rgba_picture::render(std::span<std::uint8_t> row, scratch& s) const {
  const rgba_picture* const self = this;
  render_together({&self, 1}, {&row, 1}, s);
}

MILLRACE_INLINE image rgba_picture::pixels(scratch& s) const {
  image result(shape());
  render(result.span(), s);
  return result;
}

MILLRACE_INLINE image rgba_picture::pixels() const {
  scratch own;
  return pixels(own);
}

}}   // namespace millrace
