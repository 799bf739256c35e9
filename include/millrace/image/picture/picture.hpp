// A `picture` is an image file and a plan for it: the crop, the output size, the flip, and operations on its pixels.
//
//   mr::picture p = mr::jpeg(r["jpg"]).random_resized_crop(224, rng).random_flip(rng);
//   mr::picture q = mr::jpeg(r["jpg"]).filter(mr::resize_filter::bicubic).resize_shorter(256).center_crop(224);
//   p.shape();                       // [224, 224, 3]
//   mr::image pixels = p.pixels();   // decodes now; a batch renders directly into its row instead
//
// Result: u8 RGB [height, width, 3]; gray and CMYK files become RGB. Each call returns a new plan. Crops, resizes,
// paddings and flips are applied in the order of the calls. The operations of apply() run after them. Nothing is
// decoded until the plan is rendered. Rendering decodes only the rows and columns that the result needs. Several
// resizes are merged into one resize from the source. jpeg_options::quality is `exact` or `fast`. Each value of an
// `exact` image differs by at most 1 from "decode, crop, resize, flip" with Pillow or torchvision (antialias).
// Exception: Pillow 13 resizes a tall image vertically first, but Millrace always resizes horizontally first. Therefore
// clamped values of a bicubic resize may differ by more than 1. A `fast` image is less accurate; picture_quality states
// the differences. pad(), crop_beyond() and letterbox() add pixels around the image. The plan's geometry() maps boxes,
// points and label maps to the padded image:
//
//   p = mr::jpeg(r["jpg"]).letterbox({.width = 640, .height = 640}).random_flip(rng);       // detectors
//   q = mr::png(r["png"]).pad(4).random_crop(32, rng).random_flip(rng);                     // CIFAR
//
// Decoding stops below the crop. Therefore damage below the crop is not detected.
// For several crops of one JPEG, use a column of std::array<mr::picture, n>, or several columns. The JPEG is decoded
// once for all crops of a row:
//
//   struct views { std::array<mr::picture, 2> large; std::array<mr::picture, 8> small; };   // [B, 2, 224, 224, 3], ...
//
// Errors: jpeg() throws data_error if the bytes are not a JPEG or the image exceeds max_pixels. render() throws
// data_error if the file is damaged. Both errors name shard and key. Impossible sizes throw setup_error.
// Threads: not synchronized. Copies share the file's bytes, which do not change.
// Lifetime: a `picture` keeps the memory block of its bytes alive. Bytes that own no memory (bytes::borrowed) must
// outlive the `picture`; render() throws setup_error if such bytes were freed or changed.
#pragma once

#include <millrace/base/half.hpp>
#include <millrace/image/plan/geometry.hpp>
#include <millrace/image/plan/padding.hpp>
#include <millrace/image/plan/random_crop.hpp>
#include <millrace/image/jpeg/jpeg_header.hpp>
#include <millrace/image/render/picture_job.hpp>
#include <millrace/item/borrowed_guard.hpp>
#include <millrace/item/scratch.hpp>
#include <millrace/item/tensor/tensor.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

class u16_picture;   // labels/u16_picture.hpp

/// mr::picture: an image file and its plan.
class picture {
 public:
  using element = std::uint8_t;
  static constexpr const char* rendering = "decode";   ///< how reports name the rendering of rows of this type

  /// Reads the header of a JPEG and plans the full image; see jpeg().
  explicit picture(bytes data, const jpeg_options& options = {});
  /// Plans the full image of a file whose header has been read. Called by the functions of each format, such as png().
  picture(bytes data, const detail::picture_file& file);

  /// Returns the width of the planned result in pixels; height() returns the height.
  std::size_t width() const noexcept { return static_cast<std::size_t>(across().extent()); }
  std::size_t height() const noexcept { return static_cast<std::size_t>(down().extent()); }
  /// Returns [height, width, 3].
  std::array<std::size_t, 3> shape() const noexcept { return {height(), width(), 3}; }
  /// Returns the file's header, which the plan does not change.
  const jpeg_header& header() const noexcept { return file_.header; }
  /// Returns the bytes of the file.
  const bytes& data() const noexcept { return data_; }
  /// Returns the mapping of positions in the stored image to positions in the result, for label maps, boxes and points.
  millrace::geometry geometry() const noexcept;

  /// Crops to a box, in pixels of the planned image. Throws data_error if the box is not inside the image.
  picture crop(const crop_box& box) const;

  /// Crops to the central box of this size; an odd margin is split as in torchvision. Throws data_error if the box is
  /// larger than the image.
  picture center_crop(std::size_t height, std::size_t width) const;
  picture center_crop(std::size_t side) const { return center_crop(side, side); }

  /// Resizes to this size, antialiased; the aspect ratio may change. Throws setup_error for sides outside 1..65535.
  /// Also throws setup_error if crops and resizes alternate too often for an exact plan.
  picture resize(std::size_t height, std::size_t width) const;

  /// Resizes the shorter side to `side` and keeps the aspect ratio. The longer side is rounded down, as in torchvision.
  /// Throws setup_error if a side of the result is outside 1..65535.
  picture resize_shorter(std::size_t side) const;

  /// Sets the filter of all resizes of the plan; the default is bilinear. A later call replaces the filter.
  picture filter(resize_filter with) const {
    picture next = *this;
    next.rows_.filter = next.columns_.filter = with;
    return next;
  }

  /// Selects the bilinear or the bicubic filter with equal probability, as timm does if no interpolation is configured.
  picture random_filter(rng& random) const {
    return filter(random.chance(0.5) ? resize_filter::bicubic : resize_filter::bilinear);
  }

  /// Resizes to the largest size that fits into `size`, and keeps the aspect ratio. The side that is not limited by
  /// `size` is rounded down.
  /// Throws setup_error if a side of the result is outside 1..65535.
  picture resize_within(const picture_size& size) const;

  /// Crops a random box by the rule of torchvision's RandomResizedCrop (random_crop.hpp), and resizes the box.
  /// Throws setup_error if an option or the size is out of range.
  picture random_resized_crop(std::size_t side, rng& random, const random_crop_options& options = {}) const {
    return random_resized_crop(picture_size{.width = side, .height = side}, random, options);
  }
  picture random_resized_crop(picture_size size, rng& random, const random_crop_options& options = {}) const;

  /// Crops a random box of this size. Draws the row, then the column, uniformly, as torchvision's RandomCrop does.
  /// Throws data_error if the box is larger than the image.
  picture random_crop(std::size_t side, rng& random) const {
    return random_crop(picture_size{.width = side, .height = side}, random);
  }
  picture random_crop(picture_size size, rng& random) const;

  /// Adds pixels around the image. Later resizes do not blend the color of the padding into the image. A later resize
  /// requires padding_mode::constant. Throws setup_error if a side of the result is above 65535. If the image is
  /// already padded, both paddings must have padding_mode::constant and the same color; otherwise, pad() throws
  /// setup_error. Throws data_error if an earlier crop left only padding.
  picture pad(const padding_sides& sides, const padding_fill& fill = {}) const;
  picture pad(std::size_t sides, const padding_fill& fill = {}) const {
    return pad({.left = sides, .top = sides, .right = sides, .bottom = sides}, fill);
  }
  /// Adds pixels in each dimension in which the image is smaller than `size`. The image is in the center; an odd margin
  /// is larger at the right and at the bottom.
  picture pad_to(const picture_size& size, const padding_fill& fill = {}) const;

  /// Crops to a box that may extend beyond the image. Pixels outside are padding. Throws data_error if the box has no
  /// area.
  picture crop_beyond(const outer_box& box, const padding_fill& fill = {}) const;

  /// Resizes to the largest size that fits into `size`, with the same aspect ratio. Then pads the image to `size`, with
  /// the image in the center. The side that is not limited by `size` is rounded to nearest, ties to even, as in YOLO.
  /// Throws setup_error if a side is outside 1..65535.
  picture letterbox(const picture_size& size, const letterbox_options& options = {}) const;

  /// Mirrors left and right.
  picture flip() const;
  /// Mirrors left and right with this probability.
  picture random_flip(rng& random, double probability = 0.5) const {
    return random.chance(probability) ? flip() : *this;
  }

  /// Appends an operation on the rendered pixels, for example a photometric_plan. Operations run in the order of the
  /// calls. Crops, resizes and flips run before all operations, even if apply() is called first.
  picture apply(std::shared_ptr<const row_operation> operation) const;

  /// Returns a plan that renders the 16-bit values of a PNG. Use it if the values are data, such as depth, instead of
  /// colors. Include u16_picture.hpp to call this function. Throws data_error if the file is not a PNG of 16-bit RGB.
  u16_picture u16() const;

  /// Decodes into `row`, which has height * width * 3 bytes. The bits depend only on the file and the plan. Throws
  /// setup_error if the row has another size, and data_error if the file is damaged.
  void render(std::span<std::uint8_t> row, scratch& s) const { render_alone(job_for(target_of(row, true)), s); }

  /// The maximum number of images that a batch renders together.
  static constexpr std::size_t together = 8;
  using group = detail::picture_group;
  /// Adds the image to a group whose images are rendered together, each into its row: see detail::picture_group.
  void join(group& all, std::span<std::uint8_t> row) const { all.add(job_for(target_of(row, true))); }
  /// Decodes up to `together` images, each into its row.
  static void render_together(std::span<const picture* const> pictures, std::span<const std::span<std::uint8_t>> rows,
                              scratch& s);

  /// Decodes now and returns the pixels, [height, width, 3] u8. Throws data_error if the file is damaged.
  image pixels(scratch& s) const;
  image pixels() const;

 private:
  template <detail::training_element T>
  friend class normalized_picture;
  friend class mosaic_picture;
  friend class padded_picture;
  friend class patch_list;
  friend class rgba_picture;
  friend class u16_picture;

  static std::string size_text(std::size_t width, std::size_t height);

  // The functions above return changed copies; these functions change this object.
  void crop_here(const crop_box& box);
  void resize_here(std::size_t height, std::size_t width);
  void pad_here(const padding_sides& sides, const padding_fill& fill);
  bool is_padded() const noexcept { return rows_.is_padded() || columns_.is_padded(); }
  /// A crop of a padded image only hides pixels. This function removes the hidden pixels from the plan, as pad() and
  /// resize() require. Throws data_error if only padding remains.
  void remove_hidden();

  /// Returns half of the margin, which is `total - part`. Half of an odd margin is rounded to even, as in torchvision.
  static std::size_t middle(std::size_t total, std::size_t part) noexcept;
  error_location where() const;
  void start_plan();

  /// Returns the axis of the result's columns; down() returns the axis of its rows. columns_ and rows_ are the axes of
  /// the stored image, before the EXIF orientation.
  detail::plan_axis& across() noexcept { return transposed_ ? rows_ : columns_; }
  detail::plan_axis& down() noexcept { return transposed_ ? columns_ : rows_; }
  const detail::plan_axis& across() const noexcept { return transposed_ ? rows_ : columns_; }
  const detail::plan_axis& down() const noexcept { return transposed_ ? columns_ : rows_; }

  /// Applies an EXIF orientation (CIPA DC-008, 4.6.4).
  void orient(int orientation) noexcept;

  /// Returns the size at which to decode the file, in eighths of the stored size. This is the smallest size at which
  /// the decoded crop is not smaller than the result on either axis. Returns 8 for an `exact` image.
  unsigned eighths() const noexcept;

  /// Throws setup_error if the row has another size.
  template <class T>
  detail::pixel_target target_of(std::span<T> row, bool cold) const {
    if (row.size() != height() * width() * 3)
      throw setup_error("the row for an image of shape " + to_string(shape()) + " has the wrong size: got " +
                            std::to_string(row.size()) + " elements, expected height * width * 3",
                        "Pass a row of that size", where());
    return {.data = row.data(), .cold = cold};
  }

  detail::picture_job job_for(const detail::pixel_target& target) const;
  static void render_alone(const detail::picture_job& job, scratch& s);

  bytes data_;
  detail::borrowed_guard guard_;
  detail::picture_file file_;
  detail::plan_axis columns_, rows_;                 // of the stored image
  std::shared_ptr<const row_operation> operation_;   // null for none
  bool transposed_ = false;                          // whether stored rows are columns of the result
  padding_fill padding_{};                           // the pixels of the padding
};

/// Returns a plan of the full image in `data`. Reads only the header, in less than 1.5 us.
/// Throws data_error if the bytes are not a JPEG or the image exceeds max_pixels.
inline picture jpeg(bytes data, const jpeg_options& options = {}) { return picture(std::move(data), options); }

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/image/picture/impl/picture.inl>
#endif
