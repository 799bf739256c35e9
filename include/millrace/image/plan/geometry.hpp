// An image's geometry: where its plan puts the positions of the stored image. For label maps, boxes and points.
//
//   mr::picture p = mr::jpeg(r["jpg"]).random_resized_crop(224, rng).random_flip(rng);
//   const mr::geometry g = p.geometry();               // the draws are those of p
//   auto mask = mr::labels(r["pgm"]).apply(g);         // label_map.hpp; a column of the batch like p
//   auto [boxes, kept] = g.boxes(objects, {.min_size = 2});
//   auto [joints, inside] = g.points(skeleton, {.pixel_centers = true});
//   if (g.mirrored()) swap_left_and_right(joints);
//
// Coordinates are those of edges: pixel i covers [i, i + 1), x goes to the right and y down. They are given in pixels
// of the stored image, before its EXIF orientation, and come back in pixels of the rendered one.
// Labels that were drawn on the image as viewers show it, turned by its EXIF orientation, take g.upright().
// A box keeps what lies in the image. It is left out if too little does; `kept` says which boxes remain.
// Results are the same with every compiler: the plan's integers are exact, and each position is rounded the same way.
// Errors: setup_error for options out of range. Threads: a value. Source of the rules: torchvision's crop, resize,
// horizontal_flip and sanitize_bounding_boxes, in float64 without rounding in between.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/image/plan/random_crop.hpp>
#include <millrace/image/resize/resize_plan.hpp>
#include <millrace/item/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI {

/// A position in pixels.
struct point {
  double x = 0, y = 0;
  friend bool operator==(const point&, const point&) = default;
};

/// A box by its edges, in pixels.
struct box {
  double left = 0, top = 0, right = 0, bottom = 0;
  friend bool operator==(const box&, const box&) = default;
};

/// Which boxes are left out.
struct box_options {
  double min_size = 1;   ///< least width and least height of what remains, in pixels of the rendered image
  double min_area = 1;   ///< least width * height of what remains
};

/// The meaning of the coordinates of points.
struct point_options {
  bool pixel_centers = false;   ///< true: (0, 0) is the center of the first pixel, not its corner
  bool clamp = false;           ///< moves points outside of the image to its nearest edge, or to its outermost pixel
};

/// The boxes that remain, and their numbers.
struct kept_boxes {
  std::vector<box> boxes;           ///< in pixels of the rendered image
  std::vector<std::size_t> kept;    ///< the index that each box had among the given ones; ascending

  /// Returns the values that belong to the boxes that remain: their labels, areas, flags.
  /// Throws setup_error if there are fewer values than boxes were given.
  template <class T>
  std::vector<T> of(const std::vector<T>& values) const {
    std::vector<T> made;
    made.reserve(kept.size());
    for (const std::size_t i : kept) {
      if (i >= values.size()) throw_too_few(values.size(), i);
      made.push_back(values[i]);
    }
    return made;
  }
  /// Returns the boxes as rows of left, top, right, bottom: `[n, 4]`, for a ragged column.
  template <detail::tensor_element T>
  tensor<T, 2> rows() const {
    std::vector<T> numbers;
    numbers.reserve(4 * boxes.size());
    for (const box& b : boxes)
      for (const double edge : {b.left, b.top, b.right, b.bottom}) numbers.push_back(static_cast<T>(edge));
    return tensor<T, 2>({boxes.size(), 4}, std::move(numbers));
  }

 private:
  [[noreturn]] static void throw_too_few(std::size_t values, std::size_t index);
};

/// All points, and which of them lie in the rendered image.
struct moved_points {
  std::vector<point> points;
  std::vector<std::uint8_t> inside;   ///< 1 for each point in the image, else 0
};

/// An image's geometry; made by picture::geometry().
class geometry {
 public:
  geometry() = default;
  /// Takes over a plan of an image of this size, to which an EXIF orientation has been applied; 1: none.
  geometry(const detail::resize_plan& plan, picture_size stored, int orientation) noexcept
      : plan_(plan), source_(stored), orientation_(orientation) {}

  /// Returns the size of the rendered image in pixels.
  std::size_t width() const noexcept { return static_cast<std::size_t>(across().count); }
  std::size_t height() const noexcept { return static_cast<std::size_t>(down().count); }
  /// Returns the size of the image that coordinates are given for.
  picture_size source() const noexcept { return source_; }
  /// Returns the EXIF orientation that is a part of this geometry; 1 if none is.
  int orientation() const noexcept { return orientation_; }

  /// Returns true if left and right are exchanged.
  bool mirrored() const noexcept { return (plan_.rows.flipped != plan_.columns.flipped) != plan_.transposed; }

  /// Returns the geometry without the EXIF orientation: for labels that were drawn on the image as viewers show it.
  geometry upright() const noexcept;

  /// Returns what is left of boxes in the image. Boxes without an area, or with coordinates that are not numbers, are
  /// left out. Throws setup_error if an option is negative.
  kept_boxes boxes(std::span<const box> all, const box_options& options = {}) const;

  /// Returns where the points lie, also of those outside of the image, unless they are clamped. Points that are not
  /// numbers stay that.
  moved_points points(std::span<const point> all, const point_options& options = {}) const;

  /// Returns the plan.
  const detail::resize_plan& plan() const noexcept { return plan_; }

 private:
  const detail::plan_axis& across() const noexcept { return plan_.transposed ? plan_.rows : plan_.columns; }
  const detail::plan_axis& down() const noexcept { return plan_.transposed ? plan_.columns : plan_.rows; }

  detail::resize_plan plan_{};
  picture_size source_{};
  int orientation_ = 1;
};

namespace detail {

/// Returns the axis as it is seen when its source, of `extent` pixels, is read backwards.
plan_axis mirrored_axis(const plan_axis& axis, std::int64_t extent) noexcept;

/// Returns where the axis puts an edge: 0 is where its first output begins.
double edge_on(const plan_axis& axis, double edge) noexcept;

/// Writes the source pixel of each output, in the order in which outputs are stored: the pixel that holds the output's
/// center. A center between two pixels belongs to the later one of the source.
void nearest_pixels(const plan_axis& axis, std::vector<std::uint32_t>& pixels);

}  // namespace detail

}}  // namespace millrace

#include <millrace/simd/precise_end.inc>

#ifndef MILLRACE_COMPILED
#include <millrace/image/plan/impl/geometry.inl>
#endif
