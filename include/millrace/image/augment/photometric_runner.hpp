// Applies a list of photometric operations to pixels with the fastest kernels that this CPU supports.
//
//   auto& runner = scratch.get<mr::detail::photometric_runner>();
//   runner.run(ops, {.data = row.data(), .width = 224, .height = 224});
//
// The result does not depend on the CPU. basic_photometric_runner.hpp describes the method.
// Errors: throws std::bad_alloc. Threads: not thread-safe; one thread at a time.
#pragma once

#include <millrace/image/augment/basic_photometric_runner.hpp>
#include <millrace/image/color/box_blur_avx2.hpp>
#include <millrace/image/color/gaussian_blur_avx2.hpp>
#include <millrace/image/color/hue_kernels_avx2.hpp>
#include <millrace/image/color/mix_kernels_avx2.hpp>
#include <millrace/image/color/pixel_kernels_avx2.hpp>
#include <millrace/image/color/sharpen_kernels_avx2.hpp>
#include <millrace/image/warp/warp_avx2.hpp>
#include <millrace/simd/cpu_features.hpp>

#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

#ifdef __x86_64__

struct avx2_color_kernels {
  using pixels = avx2_pixels;
  using hues = avx2_hues;
  using sharpening = avx2_sharpening;
  using boxes = avx2_boxes;
  using gaussian = avx2_gaussian;
  using warping = avx2_warping;
  using mixing = avx2_mixing;
};

class photometric_runner {
 public:
  void run(std::span<const photometric_op> ops, const rgb_pixels& p) {
    vectors_ ? fast_.run(ops, p) : plain_.run(ops, p);
  }

 private:
  bool vectors_ = cpu_has_avx2();
  basic_photometric_runner<avx2_color_kernels> fast_;
  basic_photometric_runner<portable_color_kernels> plain_;
};

#else

using photometric_runner = basic_photometric_runner<portable_color_kernels>;

#endif

}}}  // namespace millrace::detail
