// An image whose 16-bit RGB values are data, such as optical flow, depth or light. In this header, a sample is one of
// these values. Samples are never blended.
//
//   struct example { mr::picture pixels; mr::u16_picture flow; };
//   example prepare(const mr::record& r, mr::rng& rng) {
//     mr::picture p = mr::jpeg(r["jpg"]).random_resized_crop(224, rng).random_flip(rng);
//     return {p, mr::png(r["flow.png"]).u16().apply(p.geometry())};       // [B, 224, 224, 3] u16
//   }
//
// normalized_u16_picture renders [3, height, width] of f32, f16 or bf16. The flow of KITTI is (sample - 32768) / 64:
//
//   constexpr mr::sample_normalization kitti{.mean = {32'768, 32'768, 0}, .std = {64, 64, 1}};
//   mr::normalized_u16_picture<float> flow(mr::png(r["flow.png"]).u16(), kitti);
//
// Each pixel of the result is a copy of one source pixel, selected as in label_map.hpp. Therefore crops and flips are
// exact, and a resize selects the nearest pixel. The samples remain as stored: a flip does not negate the flow. In
// padding of padding_mode::constant, the samples are 0, regardless of the color of the padding. Alpha is dropped. For
// gray files of 16 bits, use mr::labels<std::uint16_t>(). A normalized value is fma(sample, 1 / std, -mean / std),
// computed in f32 and rounded to T.
// Errors: u16() throws data_error if the file is not a 16-bit RGB(A) PNG. u16() throws setup_error if the plan has a
// background (png_options), or operations on pixels, such as a photometric_plan. u16_picture::apply() throws data_error
// if the geometry is for an image of another size. Threads: not synchronized. Lifetime: the plan keeps the bytes of its
// file alive, as `picture` does.
// Cost: all rows from the top of the image to the end of the crop are inflated. Memory: the rows of the crop.
// Format: ISO/IEC 15948 (PNG); the KITTI flow format is from the devkit of the KITTI flow benchmark (2015).
#pragma once

#include <millrace/base/channel_scale.hpp>
#include <millrace/base/half.hpp>
#include <millrace/image/labels/label_map.hpp>
#include <millrace/image/picture/picture.hpp>
#include <millrace/image/plan/geometry.hpp>
#include <millrace/item/borrowed_guard.hpp>
#include <millrace/item/scratch.hpp>
#include <millrace/item/tensor/tensor.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI {

/// The mean and the standard deviation of each channel: a value is (sample - mean) / std.
struct sample_normalization {
  std::array<double, 3> mean{};            ///< per channel, in units of samples (0..65535)
  std::array<double, 3> std = {1, 1, 1};   ///< per channel, in units of samples; above 0
};

/// The plan of a PNG of 16-bit RGB; renders [height, width, 3] u16.
class u16_picture {
 public:
  using element = std::uint16_t;
  static constexpr const char* rendering = picture::rendering;

  /// Stores the file and the geometry of `plan`. Called by u16().
  explicit u16_picture(const picture& plan);

  /// Returns [height, width, 3].
  std::array<std::size_t, 3> shape() const noexcept { return {geometry_.height(), geometry_.width(), 3}; }
  /// Returns the mapping of positions in the stored image to positions in the result.
  const millrace::geometry& geometry() const noexcept { return geometry_; }
  /// Returns the bytes of the file.
  const bytes& data() const noexcept { return source_.field; }

  /// Returns a plan that renders the image with this geometry instead of the current one. Throws data_error if the
  /// image's size differs from the geometry's source.
  u16_picture apply(const millrace::geometry& g) const;

  /// Decodes into `row`, which has height * width * 3 elements. Throws setup_error if `row` has another size, and
  /// data_error if the file is damaged.
  void render(std::span<std::uint16_t> row, scratch& s) const;

  /// Decodes now and returns the samples, [height, width, 3]. Throws data_error if the file is damaged.
  tensor<std::uint16_t, 3> values() const { return detail::rendered<tensor<std::uint16_t, 3>>(*this, shape()); }

 private:
  error_location where() const;

  detail::label_source source_;
  detail::borrowed_guard guard_;
  millrace::geometry geometry_;
};

inline u16_picture picture::u16() const { return u16_picture(*this); }

namespace detail {

/// The memory of a thread that normalizes 16-bit images.
struct u16_samples {
  std::vector<std::uint16_t> row;
};

/// Returns the scale and the bias of a channel. Throws setup_error if a number is out of range.
channel_scale u16_scale_of(const sample_normalization& by, std::size_t channel);

}   // namespace detail

/// The plan of a PNG of 16-bit RGB and the normalization of its samples; renders [3, height, width] of T.
template <detail::training_element T>
class normalized_u16_picture {
 public:
  using element = T;
  static constexpr const char* rendering = picture::rendering;

  /// Stores a plan and the normalization of its samples. Throws setup_error if a std is not positive or a number is not
  /// finite.
  normalized_u16_picture(u16_picture plan, const sample_normalization& by) : picture_(std::move(plan)) {
    for (std::size_t c = 0; c < channels_.size(); ++c) channels_[c] = detail::u16_scale_of(by, c);
  }

  /// Returns [3, height, width].
  std::array<std::size_t, 3> shape() const noexcept { return {3, picture_.shape()[0], picture_.shape()[1]}; }
  /// Returns the plan of the u16 image.
  const u16_picture& plan() const noexcept { return picture_; }

  /// Decodes into `row`, which has 3 * height * width elements. Throws setup_error if `row` has another size, and
  /// data_error if the file is damaged.
  void render(std::span<T> row, scratch& s) const {
    auto& samples = s.get<detail::u16_samples>().row;
    samples.resize(row.size());
    picture_.render(samples, s);
    const std::size_t pixels = row.size() / 3;
    for (std::size_t c = 0; c < 3; ++c)
      for (std::size_t i = 0; i < pixels; ++i)
        row[c * pixels + i] = detail::half_element<T>(
            __builtin_fmaf(static_cast<float>(samples[3 * i + c]), channels_[c].scale, channels_[c].bias));
  }

 private:
  u16_picture picture_;
  std::array<detail::channel_scale, 3> channels_{};
};

}}   // namespace millrace

#include <millrace/simd/precise_end.inc>

#ifndef MILLRACE_COMPILED
#include <millrace/image/labels/impl/u16_picture.inl>
#endif
