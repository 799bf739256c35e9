// Renders four images into one row of a batch, arranged around a center, as in the training of YOLO.
//
//   struct detection { mr::picture image; std::vector<mr::box> boxes; };   // of one sample
//   struct example { mr::mosaic_picture pixels; mr::ragged<float, 2> boxes; };
//   example combine(const std::vector<detection>& of, mr::rng& rng) {      // after pack() with a cost of 1, max_cost 4
//     const auto part = [&](std::size_t i) -> const detection& { return of[i % of.size()]; };
//     const mr::mosaic_picture all({part(0).image, part(1).image, part(2).image, part(3).image},
//                                  {.size = {.width = 640, .height = 640}}, rng);
//     mr::kept_boxes boxes;
//     for (std::size_t i = 0; i < 4; ++i)
//       for (const mr::box& b : all.boxes(i, part(i).boxes, {.min_size = 2}).boxes) boxes.boxes.push_back(b);
//     return {all, mr::ragged(boxes.rows<float>(), {.max_length = 400})};
//   }
//
// Images 0, 1, 2 and 3 are at the upper left, upper right, lower left and lower right of the center. Each image touches
// the center with a corner, is not scaled, and is cropped to its quarter of the row. All other pixels have one color.
// Resize the images first, for example with resize_within({.width = 640, .height = 640}). On each axis, the center is
// drawn uniformly between min_center and 1 - min_center, as a fraction of the row's width or height.
// Errors: setup_error if an option is out of range, or if an image already has padding other than the constant color of
// the mosaic; the errors of `picture`.
// Threads: not synchronized. Cost: only the visible part of each image is decoded. Two JPEGs are decoded at once, which
// is faster than one after the other.
// Source of the rule: Mosaic of Ultralytics, without its final scaling and translation of the row.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/image/picture/picture.hpp>
#include <millrace/image/plan/padding.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI {

/// The size of a mosaic, its color and the position of its center.
struct mosaic_options {
  picture_size size{};              ///< size of the row in pixels; required; 2 to 65535 on each side
  rgb_color color{114, 114, 114};   ///< color of pixels outside the images
  double min_center = 0.25;         ///< minimum distance from center to edge, as a fraction of the side; 0 to 0.5
};

/// The plans of four images in one row; renders [height, width, 3] u8.
class mosaic_picture {
 public:
  using element = std::uint8_t;
  static constexpr const char* rendering = picture::rendering;
  static constexpr std::size_t together = picture::together / 4;

  /// Draws the vertical, then the horizontal position of the center. Throws setup_error if an option is out of range.
  mosaic_picture(const std::array<picture, 4>& images, const mosaic_options& options, rng& random)
      : size_(checked(options)),
        top_(draw_center(size_.height, options.min_center, random)),
        left_(draw_center(size_.width, options.min_center, random)),
        parts_{part(images, 0, options), part(images, 1, options), part(images, 2, options), part(images, 3, options)} {
  }

  /// Returns [height, width, 3].
  std::array<std::size_t, 3> shape() const noexcept { return {size_.height, size_.width, 3}; }
  /// Returns the plans of the quarters, with their padding.
  const std::array<picture, 4>& parts() const noexcept { return parts_; }

  /// Returns the boxes of image `i` in pixels of the row, clipped to its quarter; see geometry::boxes().
  kept_boxes boxes(std::size_t i, std::span<const box> all, const box_options& options = {}) const {
    kept_boxes result = parts_[i].geometry().boxes(all, options);
    const double x = static_cast<double>(left_of(i)), y = static_cast<double>(top_of(i));
    for (box& b : result.boxes) {
      b.left += x, b.right += x;
      b.top += y, b.bottom += y;
    }
    return result;
  }

  /// Decodes into `row`, which must have height * width * 3 bytes. Throws setup_error if the row has another size, and
  /// data_error if a file is damaged.
  void render(std::span<std::uint8_t> row, scratch& s) const { detail::render_group_of_pictures(*this, row, s); }
  using group = picture::group;
  /// Adds the images to a group whose images are rendered together.
  void join(group& all, std::span<std::uint8_t> row) const {
    if (row.size() != 3 * size_.height * size_.width)
      throw setup_error("the row for a mosaic of shape " + to_string(shape()) + " has the wrong size: got " +
                            std::to_string(row.size()) + " elements, expected height * width * 3",
                        "Pass a row of that size");
    for (std::size_t i = 0; i < parts_.size(); ++i)
      all.add(parts_[i].job_for(
          {.data = &row[3 * (top_of(i) * size_.width + left_of(i))], .row_pixels = size_.width, .cold = true}));
  }

 private:
  static picture_size checked(const mosaic_options& o) {
    constexpr std::size_t most = 65'535;
    if (o.size.width < 2 || o.size.height < 2 || o.size.width > most || o.size.height > most ||
        !(o.min_center >= 0 && o.min_center <= 0.5))
      throw setup_error("an option of a mosaic is out of range: got size " + std::to_string(o.size.width) + " x " +
                            std::to_string(o.size.height) + " and min_center " + std::to_string(o.min_center) +
                            ", expected sides from 2 to " + std::to_string(most) + " and min_center from 0 to 0.5",
                        "Set mosaic_options::size to the size of the row");
    return o.size;
  }
  /// Draws a position that leaves at least one pixel on both sides.
  static std::size_t draw_center(std::size_t side, double min_center, rng& random) {
    const auto share = static_cast<std::size_t>(static_cast<double>(side) * min_center);
    const std::size_t least = share == 0 ? 1 : share;
    return least + random.below(side - 2 * least + 1);
  }
  picture part(const std::array<picture, 4>& images, std::size_t i, const mosaic_options& options) const {
    const picture& image = images[i];
    const bool is_right = i % 2 == 1, is_below = i >= 2;
    const auto before = [](std::size_t side, std::size_t center) {
      return static_cast<std::int64_t>(side) - static_cast<std::int64_t>(center);
    };
    return image.crop_beyond({.left = is_right ? 0 : before(image.width(), left_),
                              .top = is_below ? 0 : before(image.height(), top_),
                              .width = is_right ? size_.width - left_ : left_,
                              .height = is_below ? size_.height - top_ : top_},
                             {.color = options.color});
  }
  std::size_t left_of(std::size_t i) const noexcept { return i % 2 == 1 ? left_ : 0; }
  std::size_t top_of(std::size_t i) const noexcept { return i >= 2 ? top_ : 0; }

  picture_size size_;
  std::size_t top_, left_;   // the center
  std::array<picture, 4> parts_;
};

}}   // namespace millrace

#include <millrace/simd/precise_end.inc>
