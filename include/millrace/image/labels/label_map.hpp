// A label map of an image (classes or instances of pixels). It is rendered with the image's geometry, and labels are
// never blended.
//
//   struct example { mr::picture pixels; mr::label_map<> classes; };
//   example prepare(const mr::record& r, mr::rng& rng) {
//     mr::picture p = mr::jpeg(r["jpg"]).random_resized_crop(224, rng).random_flip(rng);
//     return {p, mr::labels(r["seg.png"]).apply(p.geometry())};
//   }
//
//   auto [x, y] = b.columns();               // [B, 224, 224, 3] u8 and [B, 224, 224] u8
//
// For more than 256 instances, use mr::label_map<std::uint16_t> and mr::labels<std::uint16_t>(). The center of each
// result pixel is mapped to a position in the stored map, and the pixel at that position is copied. Therefore the map
// stays aligned with the image after any crops, resizes, flips and orientation. The quality of the image (`exact` or
// `fast`) does not change its map. The map must have the same size as the stored image. The image's EXIF orientation
// also rotates the map. For a map that was drawn on the rotated image, use p.geometry().upright().
// Formats: see label_source.hpp. Without apply(), the full map is rendered.
// Errors: labels() throws data_error for a field that is not a label map or is damaged. apply() throws data_error if
// the sizes of map and image differ. Both errors name field, shard and key. Threads: not synchronized. Lifetime: a
// label map keeps the memory block of its bytes alive. For borrowed bytes, see picture.hpp.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/image/labels/label_source.hpp>
#include <millrace/image/plan/geometry.hpp>
#include <millrace/item/borrowed_guard.hpp>
#include <millrace/item/scratch.hpp>
#include <millrace/item/tensor/tensor.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of labels(): which samples (stored numbers) are classes, and the label of all other samples.
struct label_options {
  std::optional<std::uint32_t> classes{};   ///< samples >= this number get the label `ignore`; default: none
  std::uint32_t ignore = 255;               ///< label of samples that are not a class, and of padding
};

namespace detail {

/// A label map and the geometry with which it is rendered, for both element types.
class label_plan {
 public:
  label_plan(bytes field, std::size_t element_bytes, const label_options& options);

  void apply(const geometry& g);
  std::array<std::size_t, 2> shape() const noexcept { return {geometry_.height(), geometry_.width()}; }
  picture_size stored() const noexcept { return {.width = source_.width, .height = source_.height}; }
  const bytes& data() const noexcept { return source_.field; }

  /// Writes the labels into `row`. Throws setup_error if the size of `row` does not match the shape.
  void render(std::span<std::uint8_t> row, scratch& s) const;
  void render(std::span<std::uint16_t> row, scratch& s) const;

 private:
  void check_row(std::size_t count) const;

  label_source source_;
  borrowed_guard guard_;
  geometry geometry_;
  label_options options_;
};

}   // namespace detail

/// A label map and its plan: renders `[height, width]` of T.
template <class T = std::uint8_t>
  requires std::same_as<T, std::uint8_t> || std::same_as<T, std::uint16_t>
class label_map {
 public:
  using element = T;

  /// Reads the header and plans the full map; see labels().
  explicit label_map(bytes field, const label_options& options = {}) : plan_(std::move(field), sizeof(T), options) {}

  /// Returns [height, width] of the result.
  std::array<std::size_t, 2> shape() const noexcept { return plan_.shape(); }
  /// Returns the size of the stored map in pixels.
  picture_size stored() const noexcept { return plan_.stored(); }
  /// Returns the bytes of the file.
  const bytes& data() const noexcept { return plan_.data(); }

  /// Returns a plan that renders the map with this geometry. Throws data_error if the map's size differs from the
  /// geometry's source.
  label_map apply(const geometry& g) const {
    label_map next = *this;
    next.plan_.apply(g);
    return next;
  }

  /// Writes the labels into `row`, which has height * width elements. Throws setup_error if `row` has another size.
  void render(std::span<T> row, scratch& s) const { plan_.render(row, s); }

  /// Renders now and returns the labels, [height, width].
  tensor<T, 2> values() const { return detail::rendered<tensor<T, 2>>(*this, shape()); }

 private:
  detail::label_plan plan_;
};

/// Returns a plan of the full label map in `field`. Reads only the header.
/// Throws data_error if the field is not a label map, is damaged, or has samples that do not fit T.
template <class T = std::uint8_t>
label_map<T> labels(bytes field, const label_options& options = {}) {
  return label_map<T>(std::move(field), options);
}

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/image/labels/impl/label_map.inl>
#endif
