// Applies a list of photometric operations to pixels with the fastest kernels that this CPU supports.
//
//   auto& runner = scratch.get<mr::detail::photometric_runner>();
//   runner.run(ops, {.data = row.data(), .width = 224, .height = 224});
//
// The result does not depend on the CPU. basic_photometric_runner.hpp describes the method.
// Errors: throws std::bad_alloc. Threads: not thread-safe; one thread at a time.
#pragma once

#include <millrace/image/augment/basic_photometric_runner.hpp>
#include <millrace/image/color/vector_kernels.hpp>
#include <millrace/image/warp/vector_warping.hpp>
#include <millrace/simd/cpu_features.hpp>

#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

#if defined __x86_64__ || defined __aarch64__

struct vector_color_kernels {
  using pixels = word_layer::pixels;
  using hues = word_layer::hues;
  using sharpening = word_layer::sharpening;
  using boxes = word_layer::boxes;
  using gaussian = word_layer::gaussian;
  using warping = word_layer::warping;
  using mixing = word_layer::mixing;
};

#endif

#ifdef __x86_64__

class photometric_runner {
 public:
  void run(std::span<const photometric_op> ops, const rgb_pixels& p) {
    vectors_ ? fast_.run(ops, p) : plain_.run(ops, p);
  }

 private:
  bool vectors_ = cpu_has_word_layer();
  basic_photometric_runner<vector_color_kernels> fast_;
  basic_photometric_runner<portable_color_kernels> plain_;
};

#elif defined __aarch64__

using photometric_runner = basic_photometric_runner<vector_color_kernels>;

#else

using photometric_runner = basic_photometric_runner<portable_color_kernels>;

#endif

}}}   // namespace millrace::detail
