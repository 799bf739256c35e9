// Definitions for photometric_plan.hpp.
#pragma once

#include <millrace/image/augment/photometric_plan.hpp>

#include <millrace/image/augment/augment_draws.hpp>
#include <millrace/image/augment/photometric_runner.hpp>

#include <array>
#include <string>
#include <utility>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

inline constexpr double highest_factor = 1'000;

MILLRACE_INLINE photometric_op checked_factor(const char* what, photometric_kind kind, double factor) {
  check_range(what, factor, 0, highest_factor);
  return {.kind = kind, .value = factor};
}

MILLRACE_INLINE photometric_op warp_op(photometric_kind kind, double value, const warp_options& options) {
  return {.kind = kind, .filter = static_cast<warp_filter>(options.filter), .fill = options.fill, .value = value};
}

/// Throws setup_error unless least <= low <= high <= highest.
MILLRACE_INLINE void check_interval(const char* subject, double low, double high, double least, double highest) {
  check_range(subject, low, least, highest);
  check_range(subject, high, low, highest);
}

MILLRACE_INLINE photometric_op torchvision_blur_op(std::size_t size, double sigma) {
  if (size % 2 == 0 || size > 1'001)
    throw setup_error("the size of gaussian_blur() is invalid: got " + std::to_string(size) +
                          ", expected an odd number from 1 to 1001",
                      "Pass the side of the kernel in pixels, such as 9");
  if (!(sigma > 0 && sigma <= 1e6))
    throw setup_error("the sigma of gaussian_blur() is out of range: got " + std::to_string(sigma) +
                          ", expected a number above 0 and at most 1000000",
                      "Pass sigma in pixels, such as 1.5");
  return {.kind = photometric_kind::torchvision_blur, .value = sigma, .numbers = {static_cast<std::int32_t>(size)}};
}

}   // namespace detail

MILLRACE_INLINE photometric_plan& photometric_plan::add(const detail::photometric_op& op) {
  ops_.push_back(op);
  return *this;
}

MILLRACE_INLINE photometric_plan& photometric_plan::brightness(double factor) {
  return add(detail::checked_factor("the factor of brightness()", detail::photometric_kind::brightness, factor));
}

MILLRACE_INLINE photometric_plan& photometric_plan::contrast(double factor) {
  return add(detail::checked_factor("the factor of contrast()", detail::photometric_kind::contrast, factor));
}

MILLRACE_INLINE photometric_plan& photometric_plan::saturation(double factor) {
  return add(detail::checked_factor("the factor of saturation()", detail::photometric_kind::saturation, factor));
}

MILLRACE_INLINE photometric_plan& photometric_plan::sharpness(double factor) {
  return add(detail::checked_factor("the factor of sharpness()", detail::photometric_kind::sharpness, factor));
}

MILLRACE_INLINE photometric_plan& photometric_plan::hue(double share) {
  detail::check_range("the shift of hue()", share, -0.5, 0.5);
  return add({.kind = detail::photometric_kind::hue, .value = share});
}

MILLRACE_INLINE photometric_plan& photometric_plan::grayscale() {
  return add({.kind = detail::photometric_kind::grayscale});
}

MILLRACE_INLINE photometric_plan& photometric_plan::invert() { return add({.kind = detail::photometric_kind::invert}); }

MILLRACE_INLINE photometric_plan& photometric_plan::posterize(std::size_t bits) {
  detail::check_range("the number of bits of posterize()", static_cast<double>(bits), 0, 8);
  return add({.kind = detail::photometric_kind::posterize, .numbers = {static_cast<std::int32_t>(bits)}});
}

MILLRACE_INLINE photometric_plan& photometric_plan::solarize(double threshold) {
  detail::check_range("the threshold of solarize()", threshold, 0, 256);
  return add({.kind = detail::photometric_kind::solarize, .value = threshold});
}

MILLRACE_INLINE photometric_plan& photometric_plan::solarize_add(std::size_t amount) {
  detail::check_range("the amount of solarize_add()", static_cast<double>(amount), 0, 255);
  return add({.kind = detail::photometric_kind::solarize_add, .numbers = {static_cast<std::int32_t>(amount)}});
}

MILLRACE_INLINE photometric_plan& photometric_plan::autocontrast() {
  return add({.kind = detail::photometric_kind::autocontrast});
}

MILLRACE_INLINE photometric_plan& photometric_plan::equalize() {
  return add({.kind = detail::photometric_kind::equalize});
}

MILLRACE_INLINE photometric_plan& photometric_plan::gaussian_blur(std::size_t size, double sigma) {
  return add(detail::torchvision_blur_op(size, sigma));
}

MILLRACE_INLINE photometric_plan& photometric_plan::pillow_blur(double radius) {
  detail::check_range("the radius of pillow_blur()", radius, 0, 1'000);
  return add({.kind = detail::photometric_kind::pillow_blur, .value = radius});
}

MILLRACE_INLINE photometric_plan& photometric_plan::rotate(double degrees, const warp_options& options) {
  detail::check_range("the angle of rotate()", degrees, -1e6, 1e6);
  return add(detail::warp_op(detail::photometric_kind::rotate, degrees, options));
}

MILLRACE_INLINE photometric_plan& photometric_plan::shear_x(double factor, const warp_options& options) {
  detail::check_range("the factor of shear_x()", factor, -1'000, 1'000);
  return add(detail::warp_op(detail::photometric_kind::shear_x, factor, options));
}

MILLRACE_INLINE photometric_plan& photometric_plan::shear_y(double factor, const warp_options& options) {
  detail::check_range("the factor of shear_y()", factor, -1'000, 1'000);
  return add(detail::warp_op(detail::photometric_kind::shear_y, factor, options));
}

MILLRACE_INLINE photometric_plan& photometric_plan::translate(double right, double down, const warp_options& options) {
  detail::check_range("the distance of translate()", right, -65'535, 65'535);
  detail::check_range("the distance of translate()", down, -65'535, 65'535);
  detail::photometric_op op = detail::warp_op(detail::photometric_kind::translate, right, options);
  op.second = down;
  return add(op);
}

MILLRACE_INLINE photometric_plan& photometric_plan::erase(const crop_box& box, const rgb_color& fill) {
  const auto limited = [](std::size_t n) { return static_cast<std::int32_t>(n < 1'000'000 ? n : 1'000'000); };
  return add({.kind = detail::photometric_kind::erase,
              .fill = fill,
              .numbers = {limited(box.left), limited(box.top), limited(box.width), limited(box.height)}});
}

MILLRACE_INLINE photometric_plan& photometric_plan::color_jitter(const color_jitter_options& options, rng& random) {
  using kind = detail::photometric_kind;
  const std::pair<const char*, color_factors> named[3] = {{"color_jitter_options.brightness", options.brightness},
                                                          {"color_jitter_options.contrast", options.contrast},
                                                          {"color_jitter_options.saturation", options.saturation}};
  for (const auto& [subject, factors] : named)
    detail::check_interval(subject, factors.low, factors.high, 0, detail::highest_factor);
  detail::check_interval("color_jitter_options.hue", options.hue.low, options.hue.high, -0.5, 0.5);
  detail::check_range("color_jitter_options.probability", options.probability, 0, 1);
  if (!detail::happens(random, options.probability)) return *this;
  std::array<std::size_t, 4> order = {0, 1, 2, 3};
  for (std::size_t i = 3; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);
  constexpr kind kinds[] = {kind::brightness, kind::contrast, kind::saturation, kind::hue};
  const double low[] = {options.brightness.low, options.contrast.low, options.saturation.low, options.hue.low};
  const double high[] = {options.brightness.high, options.contrast.high, options.saturation.high, options.hue.high};
  double values[4] = {};
  bool is_set[4] = {};
  for (std::size_t i = 0; i < 4; ++i) {
    const double unchanged = i < 3 ? 1 : 0;
    is_set[i] = low[i] != unchanged || high[i] != unchanged;
    if (is_set[i]) values[i] = random.uniform(low[i], high[i]);
  }
  for (const std::size_t i : order)
    if (is_set[i]) add({.kind = kinds[i], .value = values[i]});
  return *this;
}

MILLRACE_INLINE photometric_plan& photometric_plan::random_grayscale(rng& random, double probability) {
  return detail::happens(random, probability) ? grayscale() : *this;
}

MILLRACE_INLINE photometric_plan& photometric_plan::random_invert(rng& random, double probability) {
  return detail::happens(random, probability) ? invert() : *this;
}

MILLRACE_INLINE photometric_plan& photometric_plan::random_posterize(std::size_t bits, rng& random,
                                                                     double probability) {
  return detail::happens(random, probability) ? posterize(bits) : *this;
}

MILLRACE_INLINE photometric_plan& photometric_plan::random_solarize(double threshold, rng& random, double probability) {
  return detail::happens(random, probability) ? solarize(threshold) : *this;
}

MILLRACE_INLINE photometric_plan& photometric_plan::random_sharpness(double factor, rng& random, double probability) {
  return detail::happens(random, probability) ? sharpness(factor) : *this;
}

MILLRACE_INLINE photometric_plan& photometric_plan::random_autocontrast(rng& random, double probability) {
  return detail::happens(random, probability) ? autocontrast() : *this;
}

MILLRACE_INLINE photometric_plan& photometric_plan::random_equalize(rng& random, double probability) {
  return detail::happens(random, probability) ? equalize() : *this;
}

MILLRACE_INLINE photometric_plan& photometric_plan::random_gaussian_blur(const gaussian_blur_options& options,
                                                                         rng& random) {
  detail::check_interval("gaussian_blur_options.sigma", options.sigma_min, options.sigma_max, 0, 1e6);
  detail::check_range("gaussian_blur_options.probability", options.probability, 0, 1);
  if (!detail::happens(random, options.probability)) return *this;
  return gaussian_blur(options.size, random.uniform(options.sigma_min, options.sigma_max));
}

MILLRACE_INLINE photometric_plan& photometric_plan::random_pillow_blur(const pillow_blur_options& options,
                                                                       rng& random) {
  detail::check_interval("pillow_blur_options.radius", options.radius_min, options.radius_max, 0, 1'000);
  detail::check_range("pillow_blur_options.probability", options.probability, 0, 1);
  if (!detail::happens(random, options.probability)) return *this;
  return pillow_blur(random.uniform(options.radius_min, options.radius_max));
}

MILLRACE_INLINE photometric_plan& photometric_plan::rand_augment(picture_size size, rng& random,
                                                                 const rand_augment_options& options) {
  detail::draw_rand_augment(size, random, options, ops_);
  return *this;
}

MILLRACE_INLINE photometric_plan& photometric_plan::trivial_augment(picture_size size, rng& random,
                                                                    const trivial_augment_options& options) {
  detail::draw_trivial_augment(size, random, options, ops_);
  return *this;
}

MILLRACE_INLINE photometric_plan& photometric_plan::auto_augment(picture_size size, rng& random,
                                                                 const auto_augment_options& options) {
  detail::draw_auto_augment(size, random, options, ops_);
  return *this;
}

MILLRACE_INLINE photometric_plan& photometric_plan::aug_mix(picture_size size, rng& random,
                                                            const aug_mix_options& options) {
  detail::draw_aug_mix(size, random, options, ops_);
  return *this;
}

MILLRACE_INLINE photometric_plan& photometric_plan::random_erasing(picture_size size, rng& random,
                                                                   const random_erasing_options& options) {
  detail::check_range("random_erasing_options.probability", options.probability, 0, 1);
  detail::check_range("random_erasing_options.max_boxes", static_cast<double>(options.max_boxes), 1, 100);
  const detail::fixed_crop_options fixed({.scale_min = options.scale_min,
                                          .scale_max = options.scale_max,
                                          .ratio_min = options.ratio_min,
                                          .ratio_max = options.ratio_max});
  if (!detail::happens(random, options.probability)) return *this;
  const std::uint64_t boxes = options.max_boxes > 1 ? 1 + random.below(options.max_boxes) : 1;
  for (std::uint64_t box = 0; box < boxes; ++box)
    for (int attempt = 0; attempt < 10; ++attempt) {
      const auto share = static_cast<std::uint64_t>(detail::fixed_between(random, fixed.scale_min, fixed.scale_max));
      const std::int64_t log_ratio = detail::fixed_between(random, fixed.log_ratio_min, fixed.log_ratio_max);
      const std::uint64_t area = std::uint64_t{size.width} * size.height * share / boxes;
      const std::uint64_t height = detail::side_of(area, detail::fixed_exp2(log_ratio));
      const std::uint64_t width = detail::side_of(area, detail::fixed_exp2(-log_ratio));
      if (height == 0 || height >= size.height || width == 0 || width >= size.width) continue;
      const std::uint64_t top = random.below(size.height - height + 1);
      const std::uint64_t left = random.below(size.width - width + 1);
      erase({.left = left, .top = top, .width = width, .height = height}, options.fill);
      break;
    }
  return *this;
}

MILLRACE_INLINE photometric_plan& photometric_plan::apply(const photometric_plan& other) {
  const std::vector<detail::photometric_op> more = other.ops_;   // `other` may be this plan
  ops_.insert(ops_.end(), more.begin(), more.end());
  return *this;
}

namespace detail {

/// A photometric plan as an operation on rows.
class photometric_operation final : public row_operation {
 public:
  explicit photometric_operation(photometric_plan plan) : plan_(std::move(plan)) {}
  void run(const rgb_row& row, scratch& s) const override { plan_.run(row.pixels, row.width, row.height, s); }

 private:
  const photometric_plan plan_;
};

}   // namespace detail

MILLRACE_INLINE photometric_plan::operator std::shared_ptr<const row_operation>() const {
  if (empty()) return nullptr;
  return std::make_shared<detail::photometric_operation>(*this);
}

MILLRACE_INLINE void photometric_plan::run(std::span<std::uint8_t> rgb, std::size_t width, std::size_t height,
                                           scratch& s) const {
  if (rgb.size() != width * height * 3)
    throw setup_error("the pixels for a photometric plan have the wrong size: got " + std::to_string(rgb.size()) +
                          " bytes, expected height * width * 3 = " + std::to_string(width * height * 3),
                      "Pass three bytes (R, G, B) for each pixel");
  if (!ops_.empty())
    s.get<detail::photometric_runner>().run(ops_, {.data = rgb.data(), .width = width, .height = height});
}

}}   // namespace millrace

#include <millrace/simd/precise_end.inc>
