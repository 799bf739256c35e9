// Frozen digests of photometric operations on images. pillow_colors.py confirmed them with Pillow 13.
//
//   for (const frozen::color_case& c : frozen::cases()) run(c.op, c.picture());   // has the digest c.digest
#pragma once

#include <millrace/image/color/photometric_op.hpp>

#include "slow_colors.hpp"

#include <cstdint>
#include <vector>

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
