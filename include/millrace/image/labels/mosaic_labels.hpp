// Renders the label maps of the four images of a mosaic (mosaic_picture.hpp) into one row, for example the masks for
// semantic segmentation.
//
//   struct segmented { mr::picture image; mr::label_map<> mask; };          // of one sample
//   struct example { mr::mosaic_picture pixels; mr::mosaic_labels<> mask; };
//   example combine(const std::vector<segmented>& of, mr::rng& rng) {      // after pack() with a cost of 1, max_cost 4
//     const auto part = [&](std::size_t i) -> const segmented& { return of[i % of.size()]; };
//     const mr::mosaic_picture all({part(0).image, part(1).image, part(2).image, part(3).image},
//                                  {.size = {.width = 640, .height = 640}}, rng);
//     return {all, {all, {part(0).mask, part(1).mask, part(2).mask, part(3).mask}}};
//   }
//
// Map i has the geometry of image i: its quarter, crops, resizes and flips. Pixels outside of the images have the label
// `ignore` (label_options) of the map in the same quarter. Labels are never blended (label_map.hpp).
// Errors: data_error if the size of a map differs from the size of its stored image; the errors of label_map. Threads:
// not synchronized. Cost: the cost of four label maps, and one more copy of the labels.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/image/labels/label_map.hpp>
#include <millrace/image/picture/mosaic_picture.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// The plans of four label maps in one row; renders [height, width] of T.
template <class T = std::uint8_t>
class mosaic_labels {
 public:
  using element = T;

  /// Applies the geometry of each image of `mosaic` to the map with the same index. Throws the errors of
  /// label_map::apply().
  mosaic_labels(const mosaic_picture& mosaic, const std::array<label_map<T>, 4>& maps)
      : width_(mosaic.shape()[1]),
        height_(mosaic.shape()[0]),
        parts_{maps[0].apply(mosaic.parts()[0].geometry()), maps[1].apply(mosaic.parts()[1].geometry()),
               maps[2].apply(mosaic.parts()[2].geometry()), maps[3].apply(mosaic.parts()[3].geometry())} {}

  /// Returns [height, width].
  std::array<std::size_t, 2> shape() const noexcept { return {height_, width_}; }
  /// Returns the plans of the quarters.
  const std::array<label_map<T>, 4>& parts() const noexcept { return parts_; }

  /// Writes the labels into `row`. Throws setup_error if `row` does not have height * width elements, and data_error if
  /// a map is damaged.
  void render(std::span<T> row, scratch& s) const {
    if (row.size() != height_ * width_)
      throw setup_error("the destination row of a label mosaic of shape " + to_string(shape()) +
                            " has the wrong size: got " + std::to_string(row.size()) +
                            " elements, expected height * width",
                        "Pass a row of height * width elements");
    const auto [top, left] = parts_[0].shape();
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const auto [height, width] = parts_[i].shape();
      std::vector<T>& labels = s.get<quarter>().labels;
      labels.resize(height * width);
      parts_[i].render(labels, s);
      T* const to = row.data() + (i >= 2 ? top * width_ : 0) + (i % 2 == 1 ? left : 0);
      for (std::size_t y = 0; y < height; ++y) std::copy_n(labels.data() + y * width, width, to + y * width_);
    }
  }
  /// Renders now and returns the labels, [height, width].
  tensor<T, 2> values() const { return detail::rendered<tensor<T, 2>>(*this, shape()); }

 private:
  struct quarter {
    std::vector<T> labels;
  };

  std::size_t width_, height_;
  std::array<label_map<T>, 4> parts_;
};

}}   // namespace millrace
