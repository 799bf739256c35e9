// An image whose row in a batch contains normalized values: [3, height, width] of f32, f16 or bf16.
//
//   struct example { mr::normalized_picture<mr::f16> pixels; std::int32_t label; };
//   constexpr mr::pixel_normalization imagenet{.mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225}};
//   example prepare(const mr::record& r, mr::rng& rng) {
//     return {{mr::jpeg(r["jpg"]).random_resized_crop(224, rng), imagenet}, r["cls"].as<std::int32_t>()};
//   }
//
// The values are bit-identical to the result of normalize() for the u8 image. They are written directly into the row.
// random_erase() fills a box with zeros or noise, by the rule of timm and torchvision (random_erase.hpp):
//
//   const mr::random_erase_options as_timm{.probability = 0.25, .fill = mr::erase_fill::noise};
//   auto erased = mr::normalized_picture<mr::f16>(mr::jpeg(r["jpg"]).resize(224, 224), imagenet)
//                     .random_erase(rng, as_timm);
//
// Use this type to train on the CPU. To train on a GPU, copy u8 images, which are smaller, and normalize them on the
// GPU (normalize.cuh).
// Units: mean and std are relative to full scale (0..1), as in torchvision.
// Errors: the same errors as `picture`; setup_error if a std is not positive or a number is not finite. Threads: not
// synchronized.
#pragma once

#include <millrace/base/channel_scale.hpp>
#include <millrace/base/half.hpp>
#include <millrace/image/picture/picture.hpp>
#include <millrace/image/plan/random_erase.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

/// The mean and the standard deviation of each channel: a value is (pixel / 255 - mean) / std.
struct pixel_normalization {
  std::array<double, 3> mean{};            ///< per channel, relative to full scale (0..1)
  std::array<double, 3> std = {1, 1, 1};   ///< per channel, relative to full scale; above 0
};

/// The plan of an image and the normalization of its pixels; renders [3, height, width] of T.
template <detail::training_element T>
class normalized_picture {
 public:
  using element = T;
  static constexpr const char* rendering = picture::rendering;
  static constexpr std::size_t together = picture::together;

  /// Stores a plan and the normalization of its pixels. Throws setup_error if a std is not positive or a number is not
  /// finite.
  normalized_picture(picture plan, const pixel_normalization& by) : picture_(std::move(plan)) {
    for (std::size_t c = 0; c < channels_.size(); ++c)
      channels_[c] = detail::channel_scale_of(by.mean[c], by.std[c], c);
  }

  /// Returns [3, height, width].
  std::array<std::size_t, 3> shape() const noexcept { return {3, picture_.height(), picture_.width()}; }
  /// Returns the plan of the u8 image.
  const picture& plan() const noexcept { return picture_; }

  /// With the probability in `options`, erases a random box. If several calls draw a box, only the box of the last of
  /// these calls is erased. Throws setup_error if an option is out of range.
  normalized_picture random_erase(rng& random, const random_erase_options& options = {}) const {
    normalized_picture next = *this;
    const picture_size size{.width = picture_.width(), .height = picture_.height()};
    const detail::erased_box erased = detail::random_erase_box(size, random, options);
    if (erased.box.width > 0) next.erased_ = erased;
    return next;
  }

  /// Decodes into `row`, which must have 3 * height * width elements. Throws setup_error if the row has another size,
  /// and data_error if the file is damaged.
  void render(std::span<T> row, scratch& s) const {
    picture::render_alone(job_for(row), s);
    erase(row);
  }

  using group = picture::group;
  /// Adds the image to a group whose images are rendered together, each into its row.
  void join(group& all, std::span<T> row) const {
    all.add(job_for(row));
    if (erased_.box.width == 0) return;
    const auto erase_row = [](const void* item, void* to) noexcept {
      const auto& self = *static_cast<const normalized_picture*>(item);
      self.erase(std::span(static_cast<T*>(to), 3 * self.picture_.height() * self.picture_.width()));
    };
    all.add_change(erase_row, this, row.data());
  }
  /// Decodes up to `together` images, each into its row. Faster than separate calls of render(), with the same result.
  static void render_together(std::span<const normalized_picture* const> pictures, std::span<const std::span<T>> rows,
                              scratch& s) {
    std::array<detail::picture_job, together> jobs;
    for (std::size_t i = 0; i < pictures.size(); ++i) jobs[i] = pictures[i]->job_for(rows[i]);
    detail::render_pictures(std::span(jobs).first(pictures.size()), s);
    for (std::size_t i = 0; i < pictures.size(); ++i) pictures[i]->erase(rows[i]);
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

  void erase(std::span<T> row) const noexcept {
    erased_.erase(row, {.width = picture_.width(), .height = picture_.height()});
  }

  picture picture_;
  detail::erased_box erased_{};
  std::array<detail::channel_scale, 3> channels_{};
};

}}   // namespace millrace
