// Computes rows of RGB pixels from a JPEG's planes, for the requested columns only. The pixels equal libjpeg's.
//
//   mr::detail::basic_rgb_rows<mr::detail::portable_upsampling> rows;     // reused for all images
//   rows.start(planes, 101, 380);                    // columns [101, 380) of the image
//   rows.compute(60);                                   // rows 60 .. 63; 60 is a multiple of vertical_sampling
//   std::uint8_t green = rows.row(1, 2)[0];          // row 62, column rows.left() (101 or 100)
//
// The result is three planar channels. Gray planes need no conversion and are not accepted. On each side of the
// requested area, the planes must contain one more pixel. At an edge of the image, where no such pixel exists, the last
// sample is repeated, as in libjpeg. For rows below the planes, compute() repeats the last row of the planes. Callers
// may read 64 bytes beyond the end of a row.
// Errors: none. Threads: not thread-safe; one thread at a time. Cost: the buffers are reused; memory is allocated only
// when a buffer must grow. Chroma is interpolated as in fancy_upsampling.hpp. If the image has fewer than three chroma
// columns, or is decoded at 1/8 of its size, each chroma sample is repeated instead, as in libjpeg.
#pragma once

#include <millrace/image/jpeg/baseline/jpeg_planes.hpp>
#include <millrace/image/resize/fancy_upsampling.hpp>
#include <millrace/simd/cpu_features.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// A plane in which vector loads may read up to slack_bytes beyond the end of each row. The last rows of the plane are
// copied for this purpose. Lifetime: a row is valid until the next set(), and not longer than the memory of the
// plane_view.
class guarded_resize_plane {
 public:
  static constexpr std::size_t slack_bytes = 64;

  /// Sets the plane, which must have at least one sample.
  void set(const plane_view& plane) {
    plane_ = plane;
    const auto height = static_cast<std::size_t>(plane.height), width = static_cast<std::size_t>(plane.width);
    const std::size_t copies = plane.stride_bytes == 0 ? height : slack_bytes / plane.stride_bytes + 1;
    first_copy_ = height - std::min(copies, height);
    copy_stride_ = width + slack_bytes;
    copied_.resize(std::max(copied_.size(), (height - first_copy_) * copy_stride_));
    for (std::size_t y = first_copy_; y < height; ++y)
      std::memcpy(copied_.data() + (y - first_copy_) * copy_stride_, plane.data + y * plane.stride_bytes, width);
  }

  std::size_t width() const noexcept { return static_cast<std::size_t>(plane_.width); }
  std::size_t height() const noexcept { return static_cast<std::size_t>(plane_.height); }

  const std::uint8_t* row(std::size_t y) const noexcept {
    y = std::min(y, height() - 1);
    return y < first_copy_ ? plane_.data + y * plane_.stride_bytes : copied_.data() + (y - first_copy_) * copy_stride_;
  }

  /// Returns row(y) and the three rows below it.
  std::array<const std::uint8_t*, 4> four_rows(std::size_t y) const noexcept {
    if (y + 4 > first_copy_) return {row(y), row(y + 1), row(y + 2), row(y + 3)};
    const std::uint8_t* const first = plane_.data + y * plane_.stride_bytes;
    return {first, first + plane_.stride_bytes, first + 2 * plane_.stride_bytes, first + 3 * plane_.stride_bytes};
  }

 private:
  plane_view plane_;
  std::size_t first_copy_ = 0, copy_stride_ = 0;
  std::vector<std::uint8_t> copied_;
};

template <class Kernels>
class basic_rgb_rows {
 public:
  static constexpr std::size_t rows_at_once = 4;

  explicit basic_rgb_rows(bool wide_vectors = cpu_has_wide_vectors()) : wide_vectors_(wide_vectors) {}

  void start(const jpeg_planes& planes, std::size_t left, std::size_t right) {
    planes_ = planes;
    half_width_ = planes.horizontal_sampling == 2;
    half_height_ = planes.vertical_sampling == 2;
    repeats_ = planes.repeats_chroma || (half_width_ && planes.image_width <= 4);
    for (std::size_t c = 0; c < 3; ++c) plane_[c].set(planes.component[c]);
    left_ = half_width_ ? left & ~std::size_t{1} : left;
    count_ = right - left_;
    row_bytes_ = (count_ + 31) / 32 * 32 + guarded_resize_plane::slack_bytes;
    pixels_.resize(std::max(pixels_.size(), 3 * rows_at_once * row_bytes_));
    chroma_.resize(std::max(chroma_.size(), 2 * row_bytes_));
    sums_stride_ = row_bytes_ / 2 + sums_margin;
    sums_.resize(std::max(sums_.size(), 2 * rows_at_once * sums_stride_));
  }

  /// Returns the column of a row's first pixel.
  std::size_t left() const noexcept { return left_; }

  void compute(std::size_t y) noexcept {
    if (half_width_ && half_height_ && !repeats_) return compute_four_rows(y);
    for (std::size_t k = 0; k < rows_at_once; ++k) compute_row(y + k, k);
  }

  const std::uint8_t* row(std::size_t channel, std::size_t k) const noexcept { return rows(channel)[k]; }
  std::array<const std::uint8_t*, rows_at_once> rows(std::size_t channel) const noexcept {
    const std::uint8_t* const first = pixels_.data() + channel * rows_at_once * row_bytes_;
    return {first, first + row_bytes_, first + 2 * row_bytes_, first + 3 * row_bytes_};
  }

 private:
  static constexpr std::size_t sums_margin = 64;

  std::uint8_t* writable(std::size_t channel, std::size_t k) noexcept {
    return pixels_.data() + (channel * rows_at_once + k) * row_bytes_;
  }

  /// Returns luma row `y` of the image, beginning at column left_ of the image.
  const std::uint8_t* luma_row(std::size_t y) const noexcept {
    return plane_[0].row(y - static_cast<std::size_t>(planes_.top)) + (left_ - static_cast<std::size_t>(planes_.left));
  }

  /// Computes four rows of an image that is subsampled on both axes.
  void compute_four_rows(std::size_t y) noexcept {
    const std::size_t in_region = y - static_cast<std::size_t>(planes_.top), own = in_region / 2;
    for (std::size_t c = 0; c < 2; ++c) {
      const guarded_resize_plane& plane = plane_[1 + c];
      const chroma_span s = source_span_of(plane);
      const auto [first, second, third, fourth] = plane.four_rows(own == 0 ? 0 : own - 1);
      const bool is_top = own == 0;   // the first chroma row also replaces the missing row above it
      const std::uint8_t* const rows[rows_at_once] = {first + s.begin, (is_top ? first : second) + s.begin,
                                                      (is_top ? second : third) + s.begin,
                                                      (is_top ? third : fourth) + s.begin};
      std::int16_t* const at = sums_of(c) - s.before;
      const std::size_t step = 2 * sums_stride_;
      std::int16_t* const to[rows_at_once] = {at, at + step, at + 2 * step, at + 3 * step};
      Kernels::sum_four_rows(rows, s.count, to);
      for (std::int16_t* const row : to) repeat_ends(row + s.before, s);
    }
    const auto luma = plane_[0].four_rows(in_region);
    const std::size_t from_left = left_ - static_cast<std::size_t>(planes_.left);
    for (std::size_t k = 0; k < rows_at_once; ++k) {
      std::uint8_t* const red = writable(0, k);
      Kernels::color_half({.luma = luma[k] + from_left,
                           .blue = sums_of(2 * k),
                           .red = sums_of(2 * k + 1),
                           .count = count_,
                           .wide_vectors = wide_vectors_,
                           .rgb = {red, red + rows_at_once * row_bytes_, red + 2 * rows_at_once * row_bytes_}});
    }
  }

  void compute_row(std::size_t y, std::size_t k) noexcept {
    const std::size_t in_region = y - static_cast<std::size_t>(planes_.top);
    const std::size_t own = half_height_ ? in_region / 2 : in_region;
    std::uint8_t* const rgb[3] = {writable(0, k), writable(1, k), writable(2, k)};
    if (repeats_ && half_width_) return compute_repeated(luma_row(y), own, rgb);
    if (half_width_)
      return Kernels::color_half({.luma = luma_row(y),
                                  .blue = sum(0, own),
                                  .red = sum(1, own),
                                  .count = count_,
                                  .even_bias = 4,
                                  .odd_bias = 8,
                                  .wide_vectors = wide_vectors_,
                                  .rgb = {rgb[0], rgb[1], rgb[2]}});
    const bool uses_row_above = in_region % 2 == 0;
    const std::size_t other = !uses_row_above ? own + 1 : own == 0 ? 0 : own - 1;
    const std::uint8_t* chroma[2];
    for (std::size_t c = 0; c < 2; ++c)
      chroma[c] = half_height_ && !repeats_ ? blended(c, own, other, uses_row_above ? 1 : 2)
                                            : plane_[1 + c].row(own) + chroma_left();
    Kernels::color_full(
        {.luma = luma_row(y), .blue = chroma[0], .red = chroma[1], .count = count_, .rgb = {rgb[0], rgb[1], rgb[2]}});
  }

  std::size_t chroma_left() const noexcept {
    return (left_ - static_cast<std::size_t>(planes_.left)) / (half_width_ ? 2 : 1);
  }

  /// The chroma samples that a row's pixels use, and one neighbor at each end: `count` samples from `begin`. `before`
  /// is 1 if a neighbor precedes the sample of the first pixel, and 0 if there is none.
  struct chroma_span {
    std::size_t begin, before, count;
  };

  chroma_span source_span_of(const guarded_resize_plane& plane) const noexcept {
    const std::size_t first = chroma_left(), before = first == 0 ? 0 : 1;
    const std::size_t end = std::min(first + (count_ + 1) / 2 + 1, plane.width());
    return {first - before, before, end - first + before};
  }

  static void repeat_ends(std::int16_t* sums, const chroma_span& s) noexcept {
    if (s.before == 0) sums[-1] = sums[0];
    const std::size_t end = s.count - s.before;
    sums[end] = sums[end - 1];
  }

  std::int16_t* sums_of(std::size_t row) noexcept { return sums_.data() + row * sums_stride_ + sums_margin / 2; }

  /// Returns the samples of a chroma row, multiplied by four. The chroma must not be subsampled vertically.
  const std::int16_t* sum(std::size_t c, std::size_t own) noexcept {
    std::int16_t* const sums = sums_of(c);
    const chroma_span s = source_span_of(plane_[1 + c]);
    const std::uint8_t* const row = plane_[1 + c].row(own) + s.begin;
    Kernels::sum_rows(row, row, s.count, sums - s.before);
    repeat_ends(sums, s);
    return sums;
  }

  const std::uint8_t* blended(std::size_t c, std::size_t own, std::size_t other, int bias) noexcept {
    const std::size_t first = chroma_left();
    std::uint8_t* out = chroma_.data() + c * row_bytes_;
    Kernels::sum_rows(plane_[1 + c].row(own) + first, plane_[1 + c].row(other) + first, count_, sums_.data());
    Kernels::blend_rows(sums_.data(), count_, bias, out);
    return out;
  }

  void compute_repeated(const std::uint8_t* luma, std::size_t own, std::uint8_t* const* rgb) noexcept {
    for (std::size_t c = 0; c < 2; ++c)
      for (std::size_t x = 0; x < count_; ++x)
        chroma_[c * row_bytes_ + x] = plane_[1 + c].row(own)[chroma_left() + x / 2];
    Kernels::color_full({.luma = luma,
                         .blue = chroma_.data(),
                         .red = chroma_.data() + row_bytes_,
                         .count = count_,
                         .rgb = {rgb[0], rgb[1], rgb[2]}});
  }

  const bool wide_vectors_;
  jpeg_planes planes_;
  guarded_resize_plane plane_[3];
  bool half_width_ = false, half_height_ = false, repeats_ = false;
  std::size_t left_ = 0, count_ = 0, row_bytes_ = 0, sums_stride_ = 0;
  std::vector<std::uint8_t> pixels_, chroma_;
  std::vector<std::int16_t> sums_;
};

}}}   // namespace millrace::detail
