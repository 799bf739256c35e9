// Definitions for pair_rule.hpp.
#pragma once

#include <millrace/image/plan/pair_rule.hpp>

#include <algorithm>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE pair_rule::pair_rule(const options& o) : options_(o) {
  check(o);
  if (o.mixup_alpha > 0) mixup_.emplace(o.mixup_alpha);
  if (o.cutmix_alpha > 0) cutmix_.emplace(o.cutmix_alpha);
  else if (o.cutmix_minmax[1] > 0) cutmix_.emplace(1.0);
}

MILLRACE_INLINE void pair_rule::check(const options& o) {
  const auto in_range = [](double value, double least, double most) { return value >= least && value <= most; };
  const auto refuse = [](const std::string& what, double got, const std::string& expected, const char* hint) {
    throw setup_error(
        "the " + what + " of mixed rows is out of range: got " + std::to_string(got) + ", expected " + expected, hint);
  };
  for (const auto& [name, alpha] : {std::pair("mixup_alpha", o.mixup_alpha), std::pair("cutmix_alpha", o.cutmix_alpha)})
    if (alpha != 0 && !in_range(alpha, beta_draw::least_alpha, beta_draw::largest_alpha))
      refuse(name, alpha, "1/1024 to 1024, or 0 to disable", "Use the alpha of your recipe, such as 0.8");
  for (const auto& [name, p] :
       {std::pair("switch_probability", o.switch_probability), std::pair("probability", o.probability)})
    if (!in_range(p, 0, 1)) refuse(name, p, "0 to 1", "Pass a probability");
  const auto [least, most] = o.cutmix_minmax;
  if (!in_range(least, 0, 1) || !in_range(most, least, 1))
    refuse("cutmix_minmax", in_range(least, 0, 1) ? most : least,
           "two fractions of the image's side, from 0 to 1, the smaller first",
           "Pass a minimum and a maximum, such as {0.2, 0.8}");
  if (o.mixup_alpha == 0 && o.cutmix_alpha == 0 && most == 0)
    throw setup_error("mix_rows mixes nothing: got neither mixup_alpha nor cutmix_alpha, expected at least one above 0",
                      "Set an alpha, such as mixup_alpha = 0.8, or remove the stage");
}

MILLRACE_INLINE pair_mix pair_rule::draw(rng& random, picture_size size) const noexcept {
  if (!random.chance(options_.probability)) return {};
  const bool both = mixup_ && cutmix_;
  const bool by_cutmix = both ? random.chance(options_.switch_probability) : !mixup_;
  const std::uint64_t share = (by_cutmix ? *cutmix_ : *mixup_)(random);
  pair_mix mix{.mixes = true};
  if (!by_cutmix) {
    mix.row.weight = static_cast<std::uint32_t>((share + (std::uint64_t{1} << 16)) >> 17) * 2;
    mix.lambda = mix_weights(mix.row.weight).own_share;
    return mix;
  }
  mix.row = cut(random, share, size);
  const row_mix& box = mix.row;
  const std::uint64_t pixels = std::uint64_t{size.width} * size.height;
  const auto cut_out = static_cast<std::uint64_t>(box.right - box.left) * static_cast<unsigned>(box.bottom - box.top);
  mix.lambda = static_cast<float>(static_cast<double>(pixels - cut_out) / static_cast<double>(pixels));
  return mix;
}

/// `share` is the part of the row outside the box, with 32 fraction bits.
MILLRACE_INLINE row_mix pair_rule::cut(rng& random, std::uint64_t share, picture_size size) const noexcept {
  struct interval {
    std::uint16_t begin, end;
  };
  const auto narrow = [](std::uint64_t at) { return static_cast<std::uint16_t>(at); };
  const auto [least, most] = options_.cutmix_minmax;
  const std::uint64_t rest = (std::uint64_t{1} << 32) - share;
  const auto around_center = [&](std::uint64_t side) -> interval {
    const std::uint64_t half = integer_sqrt(unsigned_128{rest} * side * side >> 34);
    const std::uint64_t center = random.below(side);
    return {narrow(center - std::min(center, half)), narrow(std::min(center + half, side))};
  };
  const auto inside = [&](std::uint64_t side, std::uint64_t length) -> interval {
    const std::uint64_t begin = random.below(std::max<std::uint64_t>(1, side - length));
    return {narrow(begin), narrow(begin + length)};
  };
  const auto length_of = [&, low = least, high = most](std::uint64_t side) {
    const auto from = static_cast<std::uint64_t>(low * static_cast<double>(side));
    const auto to = static_cast<std::uint64_t>(high * static_cast<double>(side));
    return from + random.below(std::max<std::uint64_t>(1, to - from));
  };
  interval across{}, down{};
  if (most == 0) {
    across = around_center(size.width);
    down = around_center(size.height);
  } else {
    const std::uint64_t height = length_of(size.height), width = length_of(size.width);
    down = inside(size.height, height);
    across = inside(size.width, width);
  }
  return {.left = across.begin, .top = down.begin, .right = across.end, .bottom = down.end};
}

}}}   // namespace millrace::detail

#include <millrace/simd/precise_end.inc>
