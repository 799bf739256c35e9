// A varying number of images per sample, such as the images of a document or the views of an object.
//
//   struct document { mr::picture_list images; };
//   document prepare(const mr::record& r) {               // fields 1.jpg, 2.jpg, ...
//     std::vector<mr::picture> all;
//     for (const mr::bytes& file : r.fields("*.jpg")) all.push_back(mr::jpeg(file).resize(224, 224));
//     return {mr::picture_list(std::move(all), {.max_pictures = 8, .size = {.width = 224, .height = 224}})};
//   }
//
//   auto [pixels, offsets] = b.get<&document::images>();   // u8 [total, 224, 224, 3] and i32 [B + 1]
//
// The images of row i are images offsets[i] to offsets[i + 1] - 1 of the batch. The batch has no padding, and a row may
// be empty. All samples of a run must have the same options.
// Errors: data_error for more than max_pictures images (unless `truncate`) and for an image that does not have the size
// in the options; setup_error if an option is out of range; the same errors as `picture`. Threads: not synchronized.
// Lifetime: a list keeps the bytes of its files alive, as `picture` does.
// Cost: a slot (the memory of a batch) has space for max_pictures images in every row. Only the used part is copied to
// a device. A rendered row may be moved once within its slot, at about 20 us per image of 224 x 224.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/image/picture/picture.hpp>
#include <millrace/item/record.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of a column of image lists.
struct picture_list_options {
  std::size_t max_pictures =
      0;                 ///< maximum number of images in a row; required, because it determines the size of a slot
  picture_size size{};   ///< size of every image; required, because a first row without images does not define the size
  bool truncate = false;   ///< if true, drops the images after max_pictures; if false, throws data_error

  /// Compares all options.
  friend bool operator==(const picture_list_options& a, const picture_list_options& b) noexcept {
    return a.max_pictures == b.max_pictures && a.size.width == b.size.width && a.size.height == b.size.height &&
           a.truncate == b.truncate;
  }
  /// Returns "max_pictures 8, size 224 x 224", for messages.
  std::string describe() const {
    return "max_pictures " + std::to_string(max_pictures) + ", size " + std::to_string(size.width) + " x " +
           std::to_string(size.height) + (truncate ? ", truncate" : "");
  }
};

/// The image plans of one row; renders [length(), height, width, 3] u8.
class picture_list {
 public:
  using element = std::uint8_t;
  using list_mark = void;
  static constexpr const char* rendering = picture::rendering;
  static constexpr std::size_t together = picture::together;

  /// Stores the image plans of a row. Throws data_error if there are too many images or the size of an image differs
  /// from `size` in the options. Throws setup_error if an option is out of range.
  picture_list(std::vector<picture> pictures, const picture_list_options& options)
      : options_(options), pictures_(std::move(pictures)) {
    constexpr std::size_t most = 65'535;
    const picture_size& size = options.size;
    if (options.max_pictures < 1 || size.width < 1 || size.height < 1 || options.max_pictures > most ||
        size.width > most || size.height > most)
      throw setup_error("an option of a list of images is out of range: got " + options.describe() +
                            ", expected numbers from 1 to " + std::to_string(most),
                        "Set picture_list_options::max_pictures and picture_list_options::size");
    if (pictures_.size() > options.max_pictures) {
      if (!options.truncate)
        throw data_error("a list has too many images: got " + std::to_string(pictures_.size()) +
                             ", expected at most max_pictures = " + std::to_string(options.max_pictures),
                         "Raise picture_list_options::max_pictures, or set truncate to drop further images",
                         detail::location_of(pictures_.front().data()));
      pictures_.erase(pictures_.begin() + static_cast<std::ptrdiff_t>(options.max_pictures), pictures_.end());
    }
    for (std::size_t i = 0; i < pictures_.size(); ++i)
      if (const picture& p = pictures_[i]; p.width() != size.width || p.height() != size.height)
        throw data_error("image " + std::to_string(i) + " of a list has the wrong size: got " +
                             std::to_string(p.width()) + " x " + std::to_string(p.height()) + ", expected " +
                             std::to_string(size.width) + " x " + std::to_string(size.height),
                         "Crop or resize every image to picture_list_options::size", detail::location_of(p.data()));
  }

  /// Returns the number of images.
  std::size_t length() const noexcept { return pictures_.size(); }
  /// Returns the plans of the images.
  const std::vector<picture>& pictures() const noexcept { return pictures_; }
  /// Returns the options.
  const picture_list_options& options() const noexcept { return options_; }
  /// Returns the shape of the longest possible row, [max_pictures, height, width, 3].
  std::array<std::size_t, 4> shape() const noexcept {
    return {options_.max_pictures, options_.size.height, options_.size.width, 3};
  }

  /// Decodes the images, one after the other, into the front of `row`, which has space for max_pictures images. Throws
  /// setup_error if `row` has another size, data_error if a file is damaged.
  void render(std::span<std::uint8_t> row, scratch& s) const { detail::render_group_of_pictures(*this, row, s); }
  using group = picture::group;
  /// Adds the images to a group, to be rendered into the front of `row`, which has space for max_pictures images.
  void join(group& all, std::span<std::uint8_t> row) const {
    const std::size_t image_bytes = options_.size.width * options_.size.height * 3;
    if (row.size() != options_.max_pictures * image_bytes)
      throw setup_error("the row for a list of images of shape " + to_string(shape()) + " has the wrong size: got " +
                            std::to_string(row.size()) + " elements, expected max_pictures * height * width * 3",
                        "Pass a row of the expected size");
    for (std::size_t i = 0; i < pictures_.size(); ++i)
      pictures_[i].join(all, row.subspan(i * image_bytes, image_bytes));
  }

 private:
  picture_list_options options_;
  std::vector<picture> pictures_;
};

}}   // namespace millrace
