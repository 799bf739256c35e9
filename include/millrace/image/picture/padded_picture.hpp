// A picture at the upper left of a larger row: pictures of different sizes in one batch, as detectors take them.
//
//   struct example { mr::padded_picture pixels; std::array<std::int32_t, 2> size; };
//   example prepare(const mr::record& r) {
//     const mr::padded_picture p(mr::jpeg(r["jpg"]).resize_within({.width = 1333, .height = 800}),
//                                {.to = {.width = 1333, .height = 800}});
//     return {p, p.size()};
//   }
//
//   auto [pixels, sizes] = b.columns();          // [B, 800, 1333, 3] u8; [B, 2] i32: height and width of each picture
//
// The rest of the row has one color. Boxes and points need no change, because the picture stays at the upper left.
// Rows of ragged_picture.hpp are as large as the largest picture of their batch.
// Errors: setup_error if the picture is larger than the row; those of picture. Threads: a value.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/image/picture/picture.hpp>
#include <millrace/image/plan/rgb_color.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI {

/// The size of a padded row, and the color of its padding.
struct padding_options {
  picture_size to{};                       ///< size of the row in pixels
  rgb_color color{};                     ///< red, green and blue of the padding
};

/// A picture's plan and the row around it; renders [height, width, 3] u8.
class padded_picture {
  friend class ragged_picture;

 public:
  using element = std::uint8_t;
  static constexpr const char* rendering = picture::rendering;
  static constexpr std::size_t together = picture::together;

  /// Throws setup_error if the picture is larger than the row.
  padded_picture(picture plan, const padding_options& options);

  /// Returns [height, width, 3] of the row.
  std::array<std::size_t, 3> shape() const noexcept { return {options_.to.height, options_.to.width, 3}; }
  /// Returns height and width of the picture in the row.
  std::array<std::int32_t, 2> size() const noexcept {
    return {static_cast<std::int32_t>(picture_.height()), static_cast<std::int32_t>(picture_.width())};
  }
  /// Returns the plan of the picture.
  const picture& plan() const noexcept { return picture_; }

  /// Decodes into `row`, height * width * 3 bytes. Throws setup_error for another size, data_error for damage.
  void render(std::span<std::uint8_t> row, scratch& s) const;
  using group = picture::group;
  /// Adds the picture to those that are rendered at once, each into its row. Fills the padding of the row.
  void join(group& all, std::span<std::uint8_t> row) const;
  /// Decodes up to `together` pictures, each into its row; faster than one by one, with the same bits.
  static void render_together(std::span<const padded_picture* const> pictures,
                              std::span<const std::span<std::uint8_t>> rows, scratch& s);

 private:
  detail::picture_job job_for(std::span<std::uint8_t> row) const;
  void fill_padding(std::span<std::uint8_t> row) const noexcept;

  picture picture_;
  padding_options options_;
};

}}  // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/image/picture/impl/padded_picture.inl>
#endif
