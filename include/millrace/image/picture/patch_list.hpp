// The images of a sample, of any sizes, as a list of patches (squares of pixels), for vision transformers.
//
//   struct document { mr::patch_list patches; mr::ragged<std::int32_t, 2> grids; };
//   document prepare(const mr::record& r) {
//     std::vector<mr::picture> all;
//     for (const mr::bytes& file : r.fields("*.jpg"))
//       all.push_back(mr::resize_to_patches(mr::jpeg(file), {.patch = 14, .max_patches = 1'024}));
//     const mr::patch_list list(std::move(all), {.patch = 14, .max_patches = 4'096});
//     return {list, mr::ragged(list.grids(), {.max_length = 16})};
//   }
//
//   auto [patches, offsets] = b.get<&document::patches>();   // u8 [total, 14, 14, 3] and i32 [B + 1]
//   auto [grids, counts] = b.get<&document::grids>();        // i32 [B, max. images, 2]: rows and columns of patches
//
// Row i has the patches offsets[i] to offsets[i + 1] - 1: the patches of its first image, of its second image, and so
// on. The patches of an image are ordered from left to right, then from top to bottom. The batch has no padding.
// All samples of a run must have the same options.
// Errors: data_error for more than max_patches patches (unless `truncate`) and for an image with a side that is not a
// multiple of `patch`; setup_error if an option is out of range; the same errors as `picture`. Threads: not
// synchronized. Lifetime: a list keeps the bytes of its files alive, as `picture` does.
// Cost: as for a picture_list (picture_list.hpp). In addition, each rendered image is copied once into its patches. The
// source of this copy is usually in the CPU's cache. resize_to_patches() uses the rule of smart_resize() in Qwen2-VL.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/image/picture/picture.hpp>
#include <millrace/item/record.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of a column of patches.
struct patch_list_options {
  std::size_t patch = 14;        ///< side of a patch in pixels
  std::size_t max_patches = 0;   ///< maximum number of patches of a sample; required, because it sets the slot size
  bool truncate = false;         ///< if true, drops the first image that does not fit and all later ones;
                                 ///< if false, throws data_error

  friend bool operator==(const patch_list_options&, const patch_list_options&) = default;
  /// Returns "patch 14, max_patches 4096", for messages.
  std::string describe() const {
    return "patch " + std::to_string(patch) + ", max_patches " + std::to_string(max_patches) +
           (truncate ? ", truncate" : "");
  }
};

/// The image plans of one row; renders [length(), patch, patch, 3] u8.
class patch_list {
 public:
  using element = std::uint8_t;
  using list_mark = void;
  static constexpr const char* rendering = picture::rendering;
  static constexpr std::size_t together = picture::together;

  /// Stores the image plans of a row. Throws data_error if there are too many patches or a side is not a multiple of
  /// `patch`. Throws setup_error if an option is out of range.
  patch_list(std::vector<picture> pictures, const patch_list_options& options)
      : options_(options), pictures_(std::move(pictures)) {
    constexpr std::size_t max_side = 65'535, max_count = 1U << 24;
    if (options.patch < 1 || options.patch > max_side || options.max_patches < 1 || options.max_patches > max_count)
      throw setup_error("an option of a list of patches is out of range: got " + options.describe() +
                            ", expected a patch of 1 to " + std::to_string(max_side) + " and max_patches of 1 to " +
                            std::to_string(max_count),
                        "Set patch_list_options::patch and patch_list_options::max_patches");
    for (std::size_t i = 0; i < pictures_.size(); ++i) {
      const picture& p = pictures_[i];
      if (p.width() % options.patch != 0 || p.height() % options.patch != 0)
        throw data_error("image " + std::to_string(i) +
                             " of a list has sides that are not multiples of the patch size: got " +
                             std::to_string(p.width()) + " x " + std::to_string(p.height()) +
                             ", expected multiples of " + std::to_string(options.patch),
                         "Call resize_to_patches(), or crop or resize the image", detail::location_of(p.data()));
      const std::size_t total = length_ + patches_of(p);
      if (total > options.max_patches) {
        if (!options.truncate)
          throw data_error(
              "a list has too many patches: got " + std::to_string(total) + " with image " + std::to_string(i) +
                  ", expected at most max_patches " + std::to_string(options.max_patches),
              "Raise patch_list_options::max_patches, or set truncate to drop this image and all later ones",
              detail::location_of(p.data()));
        pictures_.erase(pictures_.begin() + static_cast<std::ptrdiff_t>(i), pictures_.end());
        break;
      }
      length_ = total;
    }
  }

  /// Returns the number of patches.
  std::size_t length() const noexcept { return length_; }
  /// Returns the plans of the images.
  const std::vector<picture>& pictures() const noexcept { return pictures_; }
  /// Returns, for each image, the number of its rows of patches and of its columns of patches, [images, 2].
  tensor<std::int32_t, 2> grids() const {
    tensor<std::int32_t, 2> all({pictures_.size(), 2});
    for (std::size_t i = 0; i < pictures_.size(); ++i) {
      all(i, 0) = static_cast<std::int32_t>(pictures_[i].height() / options_.patch);
      all(i, 1) = static_cast<std::int32_t>(pictures_[i].width() / options_.patch);
    }
    return all;
  }
  /// Returns the options.
  const patch_list_options& options() const noexcept { return options_; }
  /// Returns the shape of the longest possible row, [max_patches, patch, patch, 3].
  std::array<std::size_t, 4> shape() const noexcept {
    return {options_.max_patches, options_.patch, options_.patch, 3};
  }

  /// Decodes the images into the first patches of `row`, which has space for max_patches patches. Throws setup_error if
  /// `row` has another size, and data_error if a file is damaged.
  void render(std::span<std::uint8_t> row, scratch& s) const { detail::render_group_of_pictures(*this, row, s); }
  using group = picture::group;
  /// Adds the images to a group, to be rendered into the first patches of `row`, which has space for max_patches
  /// patches.
  void join(group& all, std::span<std::uint8_t> row) const {
    const std::size_t patch_bytes = options_.patch * options_.patch * 3;
    if (row.size() != options_.max_patches * patch_bytes)
      throw setup_error("the row for a patch_list of shape " + to_string(shape()) + " has the wrong size: got " +
                            std::to_string(row.size()) + " elements, expected max_patches * patch * patch * 3",
                        "Pass a row of that size");
    std::uint8_t* to = row.data();
    for (const picture& p : pictures_) {
      all.add(p.job_for({.data = to, .patch = options_.patch}));
      to += patches_of(p) * patch_bytes;
    }
  }

 private:
  std::size_t patches_of(const picture& p) const noexcept {
    return (p.height() / options_.patch) * (p.width() / options_.patch);
  }

  patch_list_options options_;
  std::vector<picture> pictures_;
  std::size_t length_ = 0;
};

/// Options of resize_to_patches().
struct resize_to_patches_options {
  std::size_t patch = 14;            ///< side of a patch in pixels
  std::size_t min_patches = 1;       ///< smaller images are enlarged to at least this number of patches
  std::size_t max_patches = 1'024;   ///< larger images are reduced to at most this number of patches
};

/// Resizes to sides that are multiples of a patch. Each side is rounded to the nearest multiple; a tie is rounded to
/// the multiple with an even number of patches. An image with too many patches is scaled to max_patches, and then its
/// sides are rounded down. An image with too few patches is scaled to min_patches, and then its sides are rounded up.
/// Each side has at least one patch. Throws setup_error if an option is out of range, or if a new side is above 65535.
inline picture resize_to_patches(const picture& image, const resize_to_patches_options& options) {
  const std::size_t patch = options.patch, fewest = options.min_patches, most = options.max_patches;
  if (patch < 1 || patch > 65'535 || fewest < 1 || most < fewest || most > 1U << 24)
    throw setup_error("an option of resize_to_patches is out of range: got patch " + std::to_string(patch) +
                          ", min_patches " + std::to_string(fewest) + " and max_patches " + std::to_string(most) +
                          ", expected 1 <= patch <= 65535 and 1 <= min_patches <= max_patches <= 16777216",
                      "Set max_patches to the number of patches that an image may have");
  const std::size_t height = image.height(), width = image.width();
  const auto nearest = [&](std::size_t side) {
    const std::size_t down = side / patch, rest = 2 * (side % patch);
    return std::max<std::size_t>(1, down + (rest > patch || (rest == patch && down % 2 == 1) ? 1 : 0));
  };
  // Returns the square root of count * a / b, rounded down.
  const auto root = [](std::size_t count, std::size_t a, std::size_t b) {
    std::size_t low = 0, high = count * a / b + 1;
    while (high - low > 1) {
      const std::size_t middle = low + (high - low) / 2;
      if (middle <= count * a / b / middle) low = middle;
      else high = middle;
    }
    return low;
  };
  std::size_t rows = nearest(height), columns = nearest(width);
  if (rows * columns > most) {
    rows = std::max<std::size_t>(1, root(most, height, width));
    columns = std::max<std::size_t>(1, root(most, width, height));
  } else if (rows * columns < fewest) {
    const auto up = [&](std::size_t a, std::size_t b) {
      const std::size_t down = root(fewest, a, b);
      return down * down * b < fewest * a ? down + 1 : down;
    };
    rows = up(height, width);
    columns = up(width, height);
  }
  rows = std::min(rows, most);
  columns = std::min(columns, most / rows);
  return image.resize(rows * patch, columns * patch);
}

}}   // namespace millrace
