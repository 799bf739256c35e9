// The label map of an image: the class number or instance number of each pixel. It is rendered with the image's
// geometry, and labels are never blended.
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
// Formats: see label_source. Without apply(), the full map is rendered.
// Errors: labels() throws data_error for a field that is not a label map or is damaged. Damaged pixels of a PNG are
// detected only when the map is rendered. apply() throws data_error if the sizes of map and image differ. All these
// errors name field, shard and key. Threads: not synchronized. Lifetime: a label map keeps the memory block of its
// bytes alive. For borrowed bytes, see picture.hpp.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/image/plan/geometry.hpp>
#include <millrace/item/borrowed_guard.hpp>
#include <millrace/item/bytes.hpp>
#include <millrace/item/scratch.hpp>
#include <millrace/item/tensor/tensor.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Opens a label map: detects the format from the content, and delivers rows of unconverted samples.
//
//   const mr::detail::label_source from = mr::detail::open_labels(field, 1);     // samples of at most one byte
//   const mr::detail::label_rows rows = from.rows_of(from, 40, 200, scratch);    // rows 40..199 at least
//   const std::byte* row = rows.data + (60 - rows.first) * rows.stride_bytes;
//
// A sample is the class number of one pixel. It is never scaled, mapped through a palette, or converted to a color.
// Formats: PGM (P5, 8 or 16 bits) and .npy ([height, width] of u8 or u16), which are read in place; PNG (palette or
// gray, 1 to 16 bits). To add a format, write a function that opens a map and a function that delivers rows.
// Errors: data_error with field, shard and key. Threads: any thread. Lifetime: a label_source keeps its field's block
// alive; rows are valid until the scratch is used again.

/// Rows of samples. Row `first` begins at `data`.
struct label_rows {
  const std::byte* data = nullptr;
  std::size_t stride_bytes = 0;
  std::size_t first = 0;
};

/// A stored label map.
struct label_source {
  /// Returns at least the rows [begin, end).
  using row_function = label_rows (*)(const label_source& from, std::size_t begin, std::size_t end, scratch& s);

  bytes field{};
  std::size_t width = 0, height = 0;   ///< 1 to 65,535 each
  std::size_t sample_bytes = 1;        ///< 1 or 2
  bool big_endian = false;             ///< byte order of two-byte samples
  std::size_t data_at = 0;             ///< offset of the samples in the field, for formats that are read in place
  row_function rows_of = nullptr;
};

// In a PNG, the samples are the palette indices or gray values, as stored. Samples of 1, 2, 4 and 8 bits become one
// byte, samples of 16 bits become two bytes. Palettes and transparency are ignored. Errors for damage have the stage
// "png". Damage after the last requested row can remain undetected.

/// Opens a label map. Throws data_error if the field is not a PNG, is damaged before the pixels, or has several
/// channels.
label_source open_png_labels(bytes field);

/// Decodes the rows [begin, end) of a PNG into memory of the scratch; see label_source::row_function.
label_rows label_rows_of_png(const label_source& from, std::size_t begin, std::size_t end, scratch& s);

/// Opens a label map. Throws data_error if the field is not a label map, is damaged, or has samples of more than
/// `limit_bytes`.
label_source open_labels(bytes field, std::size_t limit_bytes);

/// Throws the data_error for a field that cannot be read as a label map: "the field 'pgm' <problem>".
[[noreturn]] void throw_label_error(const bytes& field, const std::string& problem, std::string hint);

}}}   // namespace millrace::detail

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of labels(): which stored numbers are classes, and the label of all other pixels.
struct label_options {
  std::optional<std::uint32_t> classes{};   ///< stored numbers >= `classes` get the label `ignore`; default: no limit
  std::uint32_t ignore = 255;               ///< label of stored numbers that are not classes, and of padding
};

namespace detail {

/// A label map and the geometry with which the map is rendered, for elements of u8 and u16.
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

  /// Returns a plan that renders the map with this geometry. Throws data_error if the map and the source image of the
  /// geometry differ in size.
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
/// Throws data_error if the field is not a label map, is damaged, or stores 16-bit numbers for an 8-bit T.
template <class T = std::uint8_t>
label_map<T> labels(bytes field, const label_options& options = {}) {
  return label_map<T>(std::move(field), options);
}

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/image/labels/impl/label_map.inl>
#endif
