// Defines what padded_picture.hpp declares.
#pragma once

#include <millrace/image/picture/padded_picture.hpp>

#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE padded_picture::padded_picture(picture plan, const padding_options& options)
    : picture_(std::move(plan)), options_(options) {
  if (picture_.width() <= options.to.width && picture_.height() <= options.to.height) return;
  throw setup_error("a picture is larger than the row that it is padded to: got " +
                        picture::size_text(picture_.width(), picture_.height()) + ", expected at most " +
                        picture::size_text(options.to.width, options.to.height),
                    "Call resize_within() before", picture_.where());
}

MILLRACE_INLINE void padded_picture::render(std::span<std::uint8_t> row, scratch& s) const {
  picture::render_alone(job_for(row), s);
  fill_padding(row);
}

MILLRACE_INLINE void padded_picture::join(group& all, std::span<std::uint8_t> row) const {
  all.add(job_for(row));
  fill_padding(row);
}

MILLRACE_INLINE void padded_picture::render_together(std::span<const padded_picture* const> pictures,
                                                     std::span<const std::span<std::uint8_t>> rows, scratch& s) {
  std::array<detail::picture_job, together> jobs;
  for (std::size_t i = 0; i < pictures.size(); ++i) jobs[i] = pictures[i]->job_for(rows[i]);
  detail::render_pictures(std::span(jobs).first(pictures.size()), s);
  for (std::size_t i = 0; i < pictures.size(); ++i) pictures[i]->fill_padding(rows[i]);
}

MILLRACE_INLINE detail::picture_job padded_picture::job_for(std::span<std::uint8_t> row) const {
  if (row.size() != 3 * options_.to.height * options_.to.width)
    throw setup_error("a padded picture of shape " + to_string(shape()) + " cannot be rendered into " +
                          std::to_string(row.size()) + " elements", "Give it height * width * 3 of them",
                      picture_.where());
  return picture_.job_for({.data = row.data(), .row_pixels = options_.to.width, .cold = true});
}

MILLRACE_INLINE void padded_picture::fill_padding(std::span<std::uint8_t> row) const noexcept {
  const auto fill = [&](std::size_t first, std::size_t end) {   // in pixels of the row
    for (std::size_t i = first; i < end; ++i)
      for (std::size_t c = 0; c < 3; ++c) row[3 * i + c] = options_.color[c];
  };
  const std::size_t width = options_.to.width;
  for (std::size_t y = 0; y < picture_.height(); ++y) fill(y * width + picture_.width(), (y + 1) * width);
  fill(picture_.height() * width, options_.to.height * width);
}

}}  // namespace millrace
