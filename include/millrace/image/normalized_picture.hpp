// A picture whose row in a batch is numbers, not bytes: f32, f16 or bf16, [3, height, width], normalised.
//
//   struct example { mr::normalized_picture<mr::f16> pixels; std::int32_t label; };
//   constexpr mr::pixel_normalization imagenet{.mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225}};
//   example prepare(const mr::record& r, mr::rng& rng) {
//     return {{mr::jpeg(r["jpg"]).random_resized_crop(224, rng), imagenet}, mr::integer<std::int32_t>(r["cls"])};
//   }
//
// The numbers are those that normalize() makes of the u8 picture, bit for bit, written straight into the row. For
// training on the host; on a GPU normalize.cuh does the same to u8 pixels, of which two to four times as many fit into
// a second of copying. Units: mean and std of full scale (0..1), as torchvision writes them. Errors: as picture;
// setup_error for a std that is no positive number. Threads: a value.
#pragma once

#include <millrace/base/channel_scale.hpp>
#include <millrace/base/half.hpp>
#include <millrace/image/picture.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

/// What each channel is normalised by: (pixel / 255 - mean) / std.
struct pixel_normalization {
  std::array<double, 3> mean{};              ///< per channel, 0..1
  std::array<double, 3> std = {1, 1, 1};     ///< likewise
};

/// A picture's plan, and the numbers that become of its pixels.
template <detail::training_element T>
class normalized_picture {
 public:
  using element = T;
  static constexpr const char* rendering = picture::rendering;
  static constexpr std::size_t together = picture::together;

  normalized_picture(picture plan, const pixel_normalization& by) : picture_(std::move(plan)) {
    for (std::size_t c = 0; c < channels_.size(); ++c)
      channels_[c] = detail::channel_scale_of(by.mean[c], by.std[c], c);
  }

  std::array<std::size_t, 3> shape() const noexcept { return {3, picture_.height(), picture_.width()}; }
  const picture& plan() const noexcept { return picture_; }

  /// Decodes into `row`, which has 3 * height * width elements.
  void render(std::span<T> row, scratch& s) const { picture::render_alone(job_for(row), s); }

  static void render_together(std::span<const normalized_picture* const> pictures,
                              std::span<const std::span<T>> rows, scratch& s) {
    std::array<detail::picture_job, together> jobs;
    for (std::size_t i = 0; i < pictures.size(); ++i) jobs[i] = pictures[i]->job_for(rows[i]);
    s.get<detail::picture_renderer>().render(std::span(jobs).first(pictures.size()), s);
  }

 private:
  detail::picture_job job_for(std::span<T> row) const {
    detail::pixel_target target = picture_.target_of(row, true);
    target.type = std::is_same_v<T, float> ? detail::pixel_type::f32
                  : std::is_same_v<T, f16> ? detail::pixel_type::f16
                                           : detail::pixel_type::bf16;
    for (std::size_t c = 0; c < channels_.size(); ++c) {
      target.scale[c] = channels_[c].scale;
      target.bias[c] = channels_[c].bias;
    }
    return picture_.job_for(target);
  }

  picture picture_;
  std::array<detail::channel_scale, 3> channels_{};
};

}}  // namespace millrace
