// Mixup and cutmix as in their papers and in timm, pixel by pixel: the reference of the tests of mixed rows.
#pragma once

#include <millrace/image/plan/pair_rule.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace slow_mixes {

/// The random choices for a pair.
struct pair_mix {
  bool mixes = false, by_cutmix = false;
  std::uint64_t weight = 65'536;
  long left = 0, top = 0, right = 0, bottom = 0;
  double lambda = 1;
};

/// timm's rand_bbox and rand_bbox_minmax in real numbers.
inline pair_mix draw(const millrace::detail::pair_rule_options& o, millrace::rng& random, long height, long width) {
  pair_mix d;
  if (random.uniform() >= o.probability) return d;
  const bool cuts = o.cutmix_alpha > 0 || o.cutmix_minmax[1] > 0;
  d.mixes = true;
  d.by_cutmix = cuts && (o.mixup_alpha == 0 || random.uniform() < o.switch_probability);
  const double alpha = !d.by_cutmix ? o.mixup_alpha : o.cutmix_alpha > 0 ? o.cutmix_alpha : 1;
  const double share = static_cast<double>(millrace::detail::beta_draw(alpha)(random)) * 0x1p-32;
  if (!d.by_cutmix) {
    d.weight = 2 * static_cast<std::uint64_t>(std::floor(share * 32'768 + 0.5));
    d.lambda = static_cast<double>(d.weight) / 65'536;
    return d;
  }
  if (o.cutmix_minmax[1] == 0) {
    const long cut_width = static_cast<long>(static_cast<double>(width) * std::sqrt(1 - share));
    const long cut_height = static_cast<long>(static_cast<double>(height) * std::sqrt(1 - share));
    const long x = static_cast<long>(random.below(static_cast<std::uint64_t>(width)));
    const long y = static_cast<long>(random.below(static_cast<std::uint64_t>(height)));
    d.left = std::clamp(x - cut_width / 2, 0L, width);
    d.right = std::clamp(x + cut_width / 2, 0L, width);
    d.top = std::clamp(y - cut_height / 2, 0L, height);
    d.bottom = std::clamp(y + cut_height / 2, 0L, height);
  } else {
    const auto between = [&](long low, long high) {
      return low + static_cast<long>(random.below(high > low ? static_cast<std::uint64_t>(high - low) : 1));
    };
    const auto part = [](double share_of_side, long side) {
      return static_cast<long>(share_of_side * static_cast<double>(side));
    };
    const long cut_height = between(part(o.cutmix_minmax[0], height), part(o.cutmix_minmax[1], height));
    const long cut_width = between(part(o.cutmix_minmax[0], width), part(o.cutmix_minmax[1], width));
    d.top = between(0, height - cut_height);
    d.bottom = d.top + cut_height;
    d.left = between(0, width - cut_width);
    d.right = d.left + cut_width;
  }
  d.lambda = 1 - static_cast<double>((d.right - d.left) * (d.bottom - d.top)) / static_cast<double>(height * width);
  return d;
}

/// The formulas of item/column/row_mix.hpp, written from their description.
template <class T>
T mixed(T own, T other, std::uint64_t weight) {
  if constexpr (std::is_same_v<T, std::uint8_t>) {
    return static_cast<T>((own * weight + other * (65'536 - weight) + 32'768) / 65'536);
  } else {
    const float share = static_cast<float>(weight) / 65'536, rest = static_cast<float>(65'536 - weight) / 65'536;
    const volatile float product = rest * millrace::detail::to_float(other);   // rounded, whatever the compiler fuses
    return millrace::detail::half_element<T>(std::fma(share, millrace::detail::to_float(own), product));
  }
}

/// Mixes two rows, [height, width, channels], or [channels, height, width] if they are planar.
template <class T>
void mix(const pair_mix& d, std::vector<T>& first, std::vector<T>& second, long height, long width, bool planar) {
  const auto a = first, b = second;
  const long channels = static_cast<long>(a.size()) / (height * width);
  for (long y = 0; y < height; ++y)
    for (long x = 0; x < width; ++x)
      for (long c = 0; c < channels; ++c) {
        const long place = planar ? (c * height + y) * width + x : (y * width + x) * channels + c;
        const auto at = static_cast<std::size_t>(place);
        const bool in_box = x >= d.left && x < d.right && y >= d.top && y < d.bottom;
        first[at] = in_box ? b[at] : mixed(a[at], b[at], d.weight);
        second[at] = in_box ? a[at] : mixed(b[at], a[at], d.weight);
      }
}

}  // namespace slow_mixes
