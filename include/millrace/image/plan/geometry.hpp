// The geometry of an image plan: maps positions in the stored image to the rendered image, for label maps, boxes and
// points.
//
//   mr::picture p = mr::jpeg(r["jpg"]).random_resized_crop(224, rng).random_flip(rng);
//   const mr::geometry g = p.geometry();               // with the crop and the flip of p
//   auto mask = mr::labels(r["pgm"]).apply(g);         // label_map.hpp; a column of the batch, like p
//   auto [boxes, indices] = g.boxes(objects, {.min_size = 2});
//   auto [joints, inside] = g.points(skeleton, {.pixel_centers = true});
//   if (g.mirrored()) swap_left_and_right(joints);
//
// Coordinates refer to pixel edges: pixel i covers [i, i + 1), x increases to the right and y downwards. Input is in
// pixels of the stored image, to which the EXIF orientation is not applied yet. Output is in pixels of the rendered
// image. If labels were drawn on the upright image, as viewers show it, use g.upright().
// A box is clipped to the image, and dropped if the clipped box is too small; `indices` contains the indices of the
// remaining boxes. Results are the same with every compiler.
// Errors: setup_error for options out of range. Threads: not synchronized. Source of the rules: torchvision's crop,
// resize, horizontal_flip and sanitize_bounding_boxes. Coordinates are computed in float64 without intermediate
// rounding.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/image/plan/random_crop.hpp>
#include <millrace/image/resize/resize_plan.hpp>
#include <millrace/item/tensor/tensor.hpp>

#include <algorithm>
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

/// The minimum size of a box. Smaller boxes are dropped.
struct box_options {
  double min_size = 1;   ///< minimum width and height of a clipped box, in pixels of the rendered image
  double min_area = 1;   ///< minimum width * height of a clipped box
};

/// How the coordinates of points are interpreted and clamped.
struct point_options {
  bool pixel_centers = false;   ///< whether (0, 0) is the center of the first pixel, not its corner
  bool clamp = false;           ///< moves outside points to the nearest edge (or pixel center, with pixel_centers)
};

/// The remaining boxes and their indices.
struct kept_boxes {
  std::vector<box> boxes;             ///< in pixels of the rendered image
  std::vector<std::size_t> indices;   ///< index of each box in the input; ascending

  /// Selects the values (labels, areas, flags) that belong to the remaining boxes. `values` has one value for each
  /// input box. Throws setup_error if a remaining box has no value.
  template <class T>
  std::vector<T> of(const std::vector<T>& values) const {
    std::vector<T> selected;
    selected.reserve(indices.size());
    for (const std::size_t i : indices) {
      if (i >= values.size()) throw_too_few(values.size(), i);
      selected.push_back(values[i]);
    }
    return selected;
  }
  /// Returns the boxes as rows of left, top, right, bottom, `[n, 4]`, for a column of variable length (ragged.hpp).
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

/// All points, with flags that state whether each point is in the rendered image.
struct moved_points {
  std::vector<point> points;
  std::vector<std::uint8_t> inside;   ///< 1 for each point in the image, else 0
};

/// The geometry of an image plan; see picture::geometry().
class geometry {
 public:
  geometry() = default;
  /// Stores `plan`, which is for a stored image of size `stored`. `orientation` is the EXIF orientation that `plan`
  /// includes.
  geometry(const detail::resize_plan& plan, picture_size stored, int orientation) noexcept
      : plan_(plan), source_(stored), orientation_(orientation) {}

  /// Returns the size of the rendered image in pixels.
  std::size_t width() const noexcept { return static_cast<std::size_t>(across().extent()); }
  std::size_t height() const noexcept { return static_cast<std::size_t>(down().extent()); }
  /// Returns the size of the image to which input coordinates refer.
  picture_size source() const noexcept { return source_; }
  /// Returns the EXIF orientation that is part of this geometry; 1 if there is none.
  int orientation() const noexcept { return orientation_; }

  /// Returns true if the rendered image is a mirror image of the stored image, rotated or not. Returns false if the
  /// image is only rotated, or neither.
  bool mirrored() const noexcept { return (plan_.rows.flipped != plan_.columns.flipped) != plan_.transposed; }

  /// Returns the geometry without the EXIF orientation, for labels that were drawn on the image as viewers show it.
  geometry upright() const noexcept;

  /// Returns the boxes, mapped to the rendered image and clipped to it. Boxes without an area, or with coordinates that
  /// are not numbers, are dropped. Throws setup_error if an option is negative.
  kept_boxes boxes(std::span<const box> all, const box_options& options = {}) const;

  /// Returns all points, mapped to the rendered image. Points outside the image are clamped only if `clamp` is set. NaN
  /// coordinates stay NaN.
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

/// Returns the axis for a mirrored source. From the mirrored source, the returned axis renders the outputs that `axis`
/// renders from the original source. `extent` is the length of the source in pixels.
plan_axis mirrored_axis(const plan_axis& axis, std::int64_t extent) noexcept;

/// Converts the source coordinate `edge` to an output coordinate. Output coordinate 0 is the outer edge of the first
/// output pixel, which may be padding.
double edge_on(const plan_axis& axis, double edge) noexcept;

/// The range [begin, end) of the output pixels that show source pixels, on one axis. All other output pixels are
/// padding of a constant color.
struct shown_outputs {
  std::size_t begin = 0, end = 0;
};

/// Sets pixels[k] to the number of the source pixel that contains the center of output pixel k. Returns the output
/// pixels that show a source pixel. Output pixels are numbered as in the rendered image, after any flip. A center
/// exactly between two source pixels belongs to the second pixel in source order. If the padding repeats or mirrors the
/// image, each padding pixel also shows a source pixel, and pixels[k] is the number of that pixel. In padding of a
/// constant color, pixels[k] is undefined.
shown_outputs nearest_pixels(const plan_axis& axis, padding_mode padding, std::vector<std::uint32_t>& pixels);

/// The source pixels that the output pixels show, on both axes of a plan. An object can be reused for other plans.
struct nearest_pixel_grid {
  std::vector<std::uint32_t> rows, columns;
  shown_outputs shown_rows, shown_columns;

  void build(const resize_plan& plan) {
    shown_rows = nearest_pixels(plan.rows, plan.padding, rows);
    shown_columns = nearest_pixels(plan.columns, plan.padding, columns);
  }
  bool shows_all() const noexcept {
    return shown_rows.end - shown_rows.begin == rows.size() &&
           shown_columns.end - shown_columns.begin == columns.size();
  }
  bool shows_none() const noexcept {
    return shown_rows.begin == shown_rows.end || shown_columns.begin == shown_columns.end;
  }
  /// Returns the source rows [begin, end) that the result shows. The result must show at least one row.
  source_span row_range() const noexcept {
    source_span range{.begin = rows[shown_rows.begin], .end = 0};
    for (std::size_t y = shown_rows.begin; y < shown_rows.end; ++y) {
      range.begin = std::min<std::size_t>(range.begin, rows[y]);
      range.end = std::max<std::size_t>(range.end, rows[y] + std::size_t{1});
    }
    return range;
  }
};

}   // namespace detail

}}   // namespace millrace

#include <millrace/simd/precise_end.inc>

#ifndef MILLRACE_COMPILED
#include <millrace/image/plan/impl/geometry.inl>
#endif
