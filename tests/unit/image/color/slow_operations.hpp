// Lists of photometric operations, executed slowly, one by one; random operations of each kind; and frozen digests of
// operations, which image_oracles.py confirmed with Pillow 13.
//
//   slow::run(ops, image);
//   slow::random_operation(kind, random, image);
//   for (const frozen::color_case& c : frozen::cases()) run(c.op, c.picture());   // has the digest c.digest
#pragma once

#include <millrace/image/color/photometric_op.hpp>

#include "slow_colors.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace slow {

using mr::detail::photometric_kind;
using mr::detail::photometric_op;
using mr::detail::warp_filter;

constexpr int plain_kinds = static_cast<int>(photometric_kind::mix);   ///< the earlier ones are not parts of others

/// A blur in the integers that gaussian_blur.hpp describes. weights[d] belongs to distance d.
template <class Weights>
void integer_blur(picture& p, const Weights& weights) {
  const auto mirrored = [](std::size_t at, int d, std::size_t count) {
    const auto n = static_cast<std::int64_t>(count);
    std::int64_t place = static_cast<std::int64_t>(at) + d;
    while (n > 1 && (place < 0 || place >= n)) place = place < 0 ? -place : 2 * (n - 1) - place;
    return static_cast<std::size_t>(n == 1 ? 0 : place);
  };
  std::vector<int> samples(p.data.size());
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = 128 * (p.data[i] - 128);
  for (const bool across : {true, false}) {
    const std::vector<int> before = samples;
    for (std::size_t y = 0; y < p.height; ++y)
      for (std::size_t x = 0; x < p.width; ++x)
        for (std::size_t c = 0; c < 3; ++c) {
          const auto at = [&](int d) {
            const std::size_t sx = across ? mirrored(x, d, p.width) : x, sy = across ? y : mirrored(y, d, p.height);
            return before[(sy * p.width + sx) * 3 + c];
          };
          double sum = 0;
          for (int d = 0; d < static_cast<int>(weights.size()); ++d) {
            const int both = d == 0 ? at(0) : std::max(-32'768, at(-d) + at(d));
            sum += std::floor(both * static_cast<double>(weights[static_cast<std::size_t>(d)]) / 32'768 + 0.5);
          }
          samples[(y * p.width + x) * 3 + c] = static_cast<int>(sum);
        }
  }
  for (std::size_t i = 0; i < samples.size(); ++i)
    p.data[i] = static_cast<std::uint8_t>(std::clamp(128 + std::floor(samples[i] / 128.0 + 0.5), 0.0, 255.0));
}

/// torchvision's blur. Sums of weights from the outside are rounded to 15 fraction bits.
inline void torchvision_blur(picture& p, int size, double sigma) {
  const int half = size / 2;
  const auto real = [&](int d) { return std::exp(-d * d / (2 * sigma * sigma)); };
  double total = real(0), sum = 0;
  for (int d = 1; d <= half; ++d) total += 2 * real(d);
  std::vector<std::int64_t> weights(static_cast<std::size_t>(half) + 1);
  std::int64_t before = 0;
  for (int d = half; d > 0; --d) {
    sum += real(d);
    const auto upto = static_cast<std::int64_t>(std::floor(sum / total * 32'768 + 0.5));
    weights[static_cast<std::size_t>(d)] = upto - before;
    before = upto;
  }
  weights[0] = 32'768 - 2 * before;
  integer_blur(p, weights);
}

inline void warp(picture& p, const matrix& m, const photometric_op& op) {
  if (op.filter == warp_filter::nearest) nearest(p, m, op.fill);
  else smooth_warp(p, m, op.filter == warp_filter::bicubic, op.fill);
}

inline void run_one(const photometric_op& op, picture& p) {
  switch (op.kind) {
    case photometric_kind::brightness: return brightness(p, op.value);
    case photometric_kind::contrast: return contrast(p, op.value);
    case photometric_kind::saturation: return saturation(p, op.value);
    case photometric_kind::sharpness: return sharpness(p, op.value);
    case photometric_kind::hue: return hue(p, op.value);
    case photometric_kind::grayscale: return grayscale(p);
    case photometric_kind::invert: return invert(p);
    case photometric_kind::posterize: return posterize(p, op.numbers[0]);
    case photometric_kind::solarize: return solarize(p, op.value);
    case photometric_kind::solarize_add: return solarize_add(p, op.numbers[0]);
    case photometric_kind::autocontrast: return autocontrast(p);
    case photometric_kind::equalize: return equalize(p);
    case photometric_kind::pillow_blur: return pillow_blur(p, op.value);
    case photometric_kind::torchvision_blur: return torchvision_blur(p, op.numbers[0], op.value);
    case photometric_kind::rotate: return warp(p, rotation(op.value, p.width, p.height), op);
    case photometric_kind::shear_x: return warp(p, {1, op.value, 0, 0, 1, 0}, op);
    case photometric_kind::shear_y: return warp(p, {1, 0, 0, op.value, 1, 0}, op);
    case photometric_kind::translate: return warp(p, {1, 0, -op.value, 0, 1, -op.second}, op);
    case photometric_kind::erase:
      for (std::size_t y = 0; y < p.height; ++y)
        for (std::size_t x = 0; x < p.width; ++x) {
          const auto ix = static_cast<std::int32_t>(x), iy = static_cast<std::int32_t>(y);
          const auto [left, top, width, height] = op.numbers;
          if (ix >= left && ix < left + width && iy >= top && iy < top + height)
            for (std::size_t c = 0; c < 3; ++c) p.at(x, y, c) = op.fill[c];
        }
      return;
    default: return;
  }
}

inline void run(std::span<const photometric_op> ops, picture& p) {
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].kind != photometric_kind::mix) {
      run_one(ops[i], p);
      continue;
    }
    std::vector<std::int32_t> sums;
    for (const std::uint8_t byte : p.data) sums.push_back(ops[i].numbers[2] * byte);
    const std::int32_t chains = ops[i].numbers[0];
    for (std::int32_t k = 0; k < chains; ++k) {
      const photometric_op chain = ops[++i];
      picture result = p;
      for (std::int32_t n = 0; n < chain.numbers[0]; ++n) run_one(ops[++i], result);
      for (std::size_t at = 0; at < sums.size(); ++at) sums[at] += chain.numbers[1] * result.data[at];
    }
    for (std::size_t at = 0; at < sums.size(); ++at) p.data[at] = static_cast<std::uint8_t>(sums[at] / 16'384);
  }
}

inline photometric_op random_operation(photometric_kind kind, mr::rng& random, const picture& p) {
  photometric_op op{.kind = kind};
  // Half of the numbers are of the list, the others are anywhere between its smallest and largest one.
  const auto any = [&](auto... values) {
    const double list[] = {static_cast<double>(values)...};
    const auto [least, highest] = std::minmax_element(std::begin(list), std::end(list));
    return random.chance(0.5) ? list[random.below(sizeof...(values))] : random.uniform(*least, *highest);
  };
  op.filter = static_cast<warp_filter>(random.below(3));
  for (auto& byte : op.fill) byte = static_cast<std::uint8_t>(random.below(256));
  const auto width = static_cast<std::int64_t>(p.width), height = static_cast<std::int64_t>(p.height);
  switch (kind) {
    case photometric_kind::brightness:
    case photometric_kind::contrast:
    case photometric_kind::saturation:
    case photometric_kind::sharpness: op.value = any(0, 0.3, 0.73, 1, 1.0000001, 1.27, 1.4, 1.9, 5); break;
    case photometric_kind::hue: op.value = any(-0.5, -0.1, 0, 0.05, 0.1, 0.3, 0.5); break;
    case photometric_kind::posterize: op.numbers[0] = static_cast<std::int32_t>(random.below(9)); break;
    case photometric_kind::solarize: op.value = any(0, 0.5, 100, 128, 178.5, 256); break;
    case photometric_kind::solarize_add: op.numbers[0] = static_cast<std::int32_t>(random.below(111)); break;
    case photometric_kind::pillow_blur: op.value = any(0, 0.1, 0.7, 1.3, 2, 9); break;
    case photometric_kind::torchvision_blur:
      op.value = any(0.1, 0.5, 1.1, 2);
      op.numbers[0] = static_cast<std::int32_t>(1 + 2 * random.below(8));
      break;
    case photometric_kind::rotate: op.value = any(-400, -135, -30, -9, 0, 9, 17.5, 90, 180, 270); break;
    case photometric_kind::shear_x:
    case photometric_kind::shear_y: op.value = any(-0.99, -0.3, -0.09, 0, 0.09, 0.3); break;
    case photometric_kind::translate:
      op.value = any(-30, -3, 0, 1, 2.4, 20);
      op.second = any(-30, -3, 0, 1, 2.4, 20);
      break;
    case photometric_kind::erase:
      op.numbers = {static_cast<std::int32_t>(random.between(0, width)),
                    static_cast<std::int32_t>(random.between(0, height)),
                    static_cast<std::int32_t>(random.between(0, width)),
                    static_cast<std::int32_t>(random.between(0, height))};
      break;
    default: break;
  }
  return op;
}

}  // namespace slow

namespace frozen {

struct color_case {
  millrace::detail::photometric_op op;
  std::uint64_t digest;

  /// Smooth, with noise, and with odd sizes.
  static slow::picture picture() {
    slow::picture p(225, 123);
    millrace::rng random({.seed = 77});
    for (std::size_t y = 0; y < p.height; ++y)
      for (std::size_t x = 0; x < p.width; ++x)
        for (std::size_t c = 0; c < 3; ++c)
          p.at(x, y, c) = static_cast<std::uint8_t>((x * (c + 1) + 2 * y * (3 - c)) / 3 % 223 + random.below(32));
    return p;
  }
};

inline std::vector<color_case> cases() {
  using kind = millrace::detail::photometric_kind;
  using filter = millrace::detail::warp_filter;
  return {
      {{.kind = kind::brightness, .value = 0}, 0x29aa8ac7e372c060},
      {{.kind = kind::contrast, .value = 0}, 0xc5a46222437eabb2},
      {{.kind = kind::saturation, .value = 0}, 0xc97066f9a91cbb32},
      {{.kind = kind::sharpness, .value = 0}, 0x050d35335cd1c396},
      {{.kind = kind::brightness, .value = 0.6}, 0xaf293d8c606f5a17},
      {{.kind = kind::contrast, .value = 0.6}, 0xef86130603237f50},
      {{.kind = kind::saturation, .value = 0.6}, 0x41dfa97a5b18e453},
      {{.kind = kind::sharpness, .value = 0.6}, 0xbdda45180e24e8c7},
      {{.kind = kind::brightness, .value = 1.0000001}, 0x9cfd51b9c4b68341},
      {{.kind = kind::contrast, .value = 1.0000001}, 0xed413e014350367e},
      {{.kind = kind::saturation, .value = 1.0000001}, 0x0108267ee2f1dd84},
      {{.kind = kind::sharpness, .value = 1.0000001}, 0x2ad13ecf6ee6f3dc},
      {{.kind = kind::brightness, .value = 1.4}, 0x1480d97360834596},
      {{.kind = kind::contrast, .value = 1.4}, 0x167065c67fefb59a},
      {{.kind = kind::saturation, .value = 1.4}, 0x20163381bcd8b4c2},
      {{.kind = kind::sharpness, .value = 1.4}, 0x2d4dc9dd0a12a890},
      {{.kind = kind::brightness, .value = 1.9}, 0x94da99b3000ee50e},
      {{.kind = kind::contrast, .value = 1.9}, 0xdba7d67b5dc30e94},
      {{.kind = kind::saturation, .value = 1.9}, 0xb067d2243e61df04},
      {{.kind = kind::sharpness, .value = 1.9}, 0x4d0e8667b7a23232},
      {{.kind = kind::hue, .value = -0.5}, 0x501174a59b9c8584},
      {{.kind = kind::hue, .value = -0.1}, 0xd66b54e03f5e836f},
      {{.kind = kind::hue, .value = 0}, 0xca4def4f7e100d4e},
      {{.kind = kind::hue, .value = 0.1}, 0xae2682f3f2fb3034},
      {{.kind = kind::hue, .value = 0.33}, 0x007d5e6c575b0882},
      {{.kind = kind::grayscale}, 0xc97066f9a91cbb32},
      {{.kind = kind::invert}, 0x0b46258292a54268},
      {{.kind = kind::autocontrast}, 0x4691e99132868419},
      {{.kind = kind::equalize}, 0x69f55480f34c2bfa},
      {{.kind = kind::posterize, .numbers = {1}}, 0x10a96ddba03a537e},
      {{.kind = kind::posterize, .numbers = {4}}, 0xb76999acdabba6a0},
      {{.kind = kind::posterize, .numbers = {7}}, 0xce73f1e503010408},
      {{.kind = kind::solarize, .value = 128}, 0xff01b28383c0b369},
      {{.kind = kind::solarize, .value = 178.5}, 0x311a634fa6156fe5},
      {{.kind = kind::solarize_add, .numbers = {110}}, 0x00e5df82b19ec54b},
      {{.kind = kind::pillow_blur, .value = 0.1}, 0x9cfd51b9c4b68341},
      {{.kind = kind::pillow_blur, .value = 1.3}, 0xded26b26d0de5e7a},
      {{.kind = kind::pillow_blur, .value = 2}, 0xfe2feadb6a2c21f0},
      {{.kind = kind::pillow_blur, .value = 9}, 0xa6dfb087fcf8feba},
      {{.kind = kind::torchvision_blur, .value = 0.3, .numbers = {9}}, 0x74ba2d1dd302945f},
      {{.kind = kind::torchvision_blur, .value = 1.2, .numbers = {9}}, 0x3f4fa5b2c9ac67a5},
      {{.kind = kind::torchvision_blur, .value = 2, .numbers = {23}}, 0xfdf769615fc9bab7},
      {{.kind = kind::rotate, .filter = filter::nearest, .fill = {124, 116, 104}, .value = 9}, 0x445811a9ea288646},
      {{.kind = kind::rotate, .filter = filter::nearest, .fill = {124, 116, 104}, .value = -135.5}, 0x69c8734518058b76},
      {{.kind = kind::shear_x, .filter = filter::nearest, .fill = {1, 2, 3}, .value = 0.09}, 0x0235c667c492955d},
      {{.kind = kind::shear_y, .filter = filter::nearest, .value = -0.3}, 0x531e87904f65b1b9},
      {{.kind = kind::translate, .filter = filter::nearest, .fill = {9, 8, 7}, .value = 30, .second = -4.5},
       0x00d45e2ab53fcccf},
      {{.kind = kind::rotate, .filter = filter::bilinear, .fill = {124, 116, 104}, .value = 9}, 0x278487ef3680fb9b},
      {{.kind = kind::rotate, .filter = filter::bilinear, .fill = {124, 116, 104}, .value = -135.5},
       0xa885aae98a67ce1c},
      {{.kind = kind::shear_x, .filter = filter::bilinear, .fill = {1, 2, 3}, .value = 0.09}, 0xbf5a1fad04efbf87},
      {{.kind = kind::shear_y, .filter = filter::bilinear, .value = -0.3}, 0x65b4b1a5b3d5f9a1},
      {{.kind = kind::translate, .filter = filter::bilinear, .fill = {9, 8, 7}, .value = 30, .second = -4.5},
       0x0fb3c7a110e6afdf},
      {{.kind = kind::rotate, .filter = filter::bicubic, .fill = {124, 116, 104}, .value = 9}, 0x48ce102bc94d8387},
      {{.kind = kind::rotate, .filter = filter::bicubic, .fill = {124, 116, 104}, .value = -135.5}, 0x0605617d77dcddfa},
      {{.kind = kind::shear_x, .filter = filter::bicubic, .fill = {1, 2, 3}, .value = 0.09}, 0x7d30640e2f48839b},
      {{.kind = kind::shear_y, .filter = filter::bicubic, .value = -0.3}, 0xd14f54e23f5f3d7c},
      {{.kind = kind::translate, .filter = filter::bicubic, .fill = {9, 8, 7}, .value = 30, .second = -4.5},
       0x976ea9d2f65e1ccb},
      {{.kind = kind::erase, .fill = {124, 116, 104}, .numbers = {30, 20, 100, 90}}, 0x3656f3c3476d46c9},
  };
}

}  // namespace frozen
