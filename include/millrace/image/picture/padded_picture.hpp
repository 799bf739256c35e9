// An image at the upper left of a larger row. A batch of such rows can contain images of different sizes, as object
// detectors need.
//
//   struct example { mr::padded_picture pixels; std::array<std::int32_t, 2> size; };
//   example prepare(const mr::record& r) {
//     const mr::padded_picture p(mr::jpeg(r["jpg"]).resize_within({.width = 1333, .height = 800}),
//                                {.to = {.width = 1333, .height = 800}});
//     return {p, p.size()};
//   }
//
//   auto [pixels, sizes] = b.columns();          // [B, 800, 1333, 3] u8; [B, 2] i32: height and width of each image
//
// The rest of the row has one color. Boxes and points stay valid, because the image is at the upper left.
// To size the rows by the largest image of each batch, use ragged_picture.hpp.
// Errors: setup_error if the image is larger than the row, and the errors of `picture`. Threads: not synchronized.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/image/picture/picture.hpp>
#include <millrace/image/plan/padding.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

/// The size of a padded row and the color of its padding.
struct padding_options {
  picture_size to{};   ///< size of the row in pixels
  rgb_color color{};   ///< red, green and blue of the padding
};

/// The plan of a row with an image at its upper left. The row is [height, width, 3] u8.
class padded_picture {
  friend class ragged_picture;

 public:
  using element = std::uint8_t;
  static constexpr const char* rendering = picture::rendering;
  static constexpr std::size_t together = picture::together;

  /// Places the image at the upper left of the row. Throws setup_error if the image is larger than the row.
  padded_picture(picture plan, const padding_options& options) : picture_(std::move(plan)), options_(options) {
    if (picture_.width() <= options.to.width && picture_.height() <= options.to.height) return;
    throw setup_error("an image is larger than its padded row: got " +
                          picture::size_text(picture_.width(), picture_.height()) + ", expected at most " +
                          picture::size_text(options.to.width, options.to.height),
                      "Call resize_within() first", picture_.where());
  }

  /// Returns the shape of the row, [height, width, 3].
  std::array<std::size_t, 3> shape() const noexcept { return {options_.to.height, options_.to.width, 3}; }
  /// Returns the height and width of the image in the row.
  std::array<std::int32_t, 2> size() const noexcept {
    return {static_cast<std::int32_t>(picture_.height()), static_cast<std::int32_t>(picture_.width())};
  }
  /// Returns the plan of the image.
  const picture& plan() const noexcept { return picture_; }

  /// Decodes into `row`, which must have height * width * 3 bytes. Throws setup_error if the row has another size, and
  /// data_error if the file is damaged.
  void render(std::span<std::uint8_t> row, scratch& s) const {
    picture::render_alone(job_for(row), s);
    fill_padding(row);
  }
  using group = picture::group;
  /// Adds the image to a group whose images are rendered together. Fills the padding of the row.
  void join(group& all, std::span<std::uint8_t> row) const {
    all.add(job_for(row));
    fill_padding(row);
  }
  /// Decodes up to `together` images, each into its row. Faster than separate calls of render(), with the same result.
  static void render_together(std::span<const padded_picture* const> pictures,
                              std::span<const std::span<std::uint8_t>> rows, scratch& s) {
    std::array<detail::picture_job, together> jobs;
    for (std::size_t i = 0; i < pictures.size(); ++i) jobs[i] = pictures[i]->job_for(rows[i]);
    detail::render_pictures(std::span(jobs).first(pictures.size()), s);
    for (std::size_t i = 0; i < pictures.size(); ++i) pictures[i]->fill_padding(rows[i]);
  }

 private:
  detail::picture_job job_for(std::span<std::uint8_t> row) const {
    if (row.size() != 3 * options_.to.height * options_.to.width)
      throw setup_error("the row for a padded image of shape " + to_string(shape()) + " has the wrong size: got " +
                            std::to_string(row.size()) + " elements, expected height * width * 3",
                        "Pass a row of that size", picture_.where());
    return picture_.job_for({.data = row.data(), .row_pixels = options_.to.width, .cold = true});
  }
  void fill_padding(std::span<std::uint8_t> row) const noexcept {
    const auto fill = [&](std::size_t first, std::size_t end) {   // in pixels of the row
      for (std::size_t i = first; i < end; ++i)
        for (std::size_t c = 0; c < 3; ++c) row[3 * i + c] = options_.color[c];
    };
    const std::size_t width = options_.to.width;
    for (std::size_t y = 0; y < picture_.height(); ++y) fill(y * width + picture_.width(), (y + 1) * width);
    fill(picture_.height() * width, options_.to.height * width);
  }

  picture picture_;
  padding_options options_;
};

}}   // namespace millrace
