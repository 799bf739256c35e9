// An image for object detectors, which require images of different sizes. All rows of a batch have the height of the
// tallest image and the width of the widest image.
//
//   struct example { mr::ragged_picture pixels; };
//   example prepare(const mr::record& r) {
//     constexpr mr::picture_size most{.width = 1333, .height = 800};
//     return {mr::ragged_picture(mr::jpeg(r["jpg"]).resize_within(most), {.max = most})};
//   }
//
//   auto [pixels, sizes] = b.get<&example::pixels>();    // u8 [B, tallest, widest, 3] and i32 [B, 2]: height and width
//
// Each image is at the upper left of its row; the rest of the row has one color. A slot (the memory of a batch) has
// space for an image of size `max` in every row. Only the used part is copied to a device. To group images of similar
// shape, use mr::bucket<&example::kind>(). Add the member `kind` to `example`, and set it to a number, such as 1 for
// portrait and 2 for landscape. All samples of a run must have the same options.
// Errors: setup_error if the image is larger than `max`, or if an option is out of range. Also the errors of `picture`.
// Threads: not synchronized.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/image/picture/padded_picture.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

/// The maximum size of the images in a batch, and their padding.
struct ragged_picture_options {
  picture_size max{};            ///< largest image; required, because slots reserve this size
  std::size_t multiple_of = 1;   ///< rounds both sides of a row up to a multiple of this number, but not above `max`
  rgb_color color{};             ///< color of the padding

  /// Returns whether all options are equal.
  friend bool operator==(const ragged_picture_options& a, const ragged_picture_options& b) noexcept {
    return a.max.width == b.max.width && a.max.height == b.max.height && a.multiple_of == b.multiple_of &&
           a.color == b.color;
  }

  /// Returns "max 1333 x 800, multiple_of 32, color 0 0 0", for messages.
  std::string describe() const {
    std::string text = "max " + std::to_string(max.width) + " x " + std::to_string(max.height) + ", multiple_of " +
                       std::to_string(multiple_of) + ", color";
    for (const std::uint8_t value : color) (text += ' ') += std::to_string(value);
    return text;
  }
  /// Returns the height and width of a batch's rows, given the largest height and width of its images.
  std::array<std::size_t, 2> padded(const std::array<std::size_t, 2>& largest) const noexcept {
    const auto up = [this](std::size_t side, std::size_t most) {
      return std::min(most, (side + multiple_of - 1) / multiple_of * multiple_of);
    };
    return {up(largest[0], max.height), up(largest[1], max.width)};
  }
  /// Fills the pixels of the padding with the color.
  void fill(std::span<std::uint8_t> pixels) const noexcept {
    if (color[0] == color[1] && color[1] == color[2]) {
      std::fill(pixels.begin(), pixels.end(), color[0]);
      return;
    }
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = color[i % 3];
  }
};

/// The plan of an image; renders at most [max.height, max.width, 3] u8.
class ragged_picture {
 public:
  using element = std::uint8_t;
  static constexpr const char* rendering = picture::rendering;
  static constexpr std::size_t together = picture::together;

  /// Stores a plan and its options. Throws setup_error if the image is larger than `max`, or if an option is out of
  /// range.
  ragged_picture(picture plan, const ragged_picture_options& options)
      : options_(options), padded_(std::move(plan), checked(options)) {}

  /// Returns the shape of the largest possible row, [height, width, 3].
  std::array<std::size_t, 3> shape() const noexcept { return padded_.shape(); }
  /// Returns the height and width of the image.
  std::array<std::int32_t, 2> size() const noexcept { return padded_.size(); }
  /// Returns the options.
  const ragged_picture_options& options() const noexcept { return options_; }
  /// Returns the plan of the image.
  const picture& plan() const noexcept { return padded_.plan(); }

  /// Decodes into `row`, which must have the size of the largest possible row. Fills the rest of `row` with padding.
  /// Throws setup_error if `row` has another size, and data_error if the file is damaged.
  void render(std::span<std::uint8_t> row, scratch& s) const { padded_.render(row, s); }
  using group = picture::group;
  /// Adds the image to a group, to be rendered at the upper left of `row`. The batch fills the padding afterwards.
  void join(group& all, std::span<std::uint8_t> row) const { all.add(padded_.job_for(row)); }

 private:
  static padding_options checked(const ragged_picture_options& o) {
    constexpr std::size_t most = 65'535;
    if (o.max.width < 1 || o.max.height < 1 || o.max.width > most || o.max.height > most || o.multiple_of < 1 ||
        o.multiple_of > most)
      throw setup_error("an option of a ragged image is out of range: got " + o.describe() +
                            ", expected numbers from 1 to " + std::to_string(most),
                        "Set ragged_picture_options::max to the size of the largest image");
    return {.to = o.max, .color = o.color};
  }

  ragged_picture_options options_;
  padded_picture padded_;
};

}}   // namespace millrace
