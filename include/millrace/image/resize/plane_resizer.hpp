// Renders a decoder's planes or rows to one image of a batch: crop, antialiased resize, flip, conversion to RGB.
//
//   mr::detail::plane_resizer r;                                             // reused for all images
//   r.start({.plan = {.rows = y, .columns = x}, .target = {.data = row, .cold = true}});
//   r.render(planes);                     // `planes` must contain resize_source_box(plan, image); see resize_plan.hpp
//   // Instead of render(), you can pass rows of RGBX. The first one is row r.rows().source_begin() of the image:
//   r.set_source(left, width);
//   while (r.wants_rows()) { fill(r.next_row()); r.commit_row(); }
//
// plane_resize::fast selects the method:
// - false: computes the same RGB as libjpeg, then resizes it. The result differs by at most 1 from Pillow.
// - true: resizes the planes, then converts the result to RGB.
//
// Shapes: pixel_target.hpp. Errors: throws std::bad_alloc. Threads: not thread-safe; one thread at a time. Every CPU
// produces the same bits. No byte outside the image is written, and no byte outside the planes is read.
#pragma once

#include <millrace/image/resize/plane_kernels.hpp>
#include <millrace/image/resize/basic_plane_resizer.hpp>
#include <millrace/simd/cpu_features.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

#ifdef __x86_64__

class plane_resizer {
 public:
  /// `wide_vectors` allows registers of 512 bits. The pixels do not depend on `wide_vectors`.
  explicit plane_resizer(bool wide_vectors = cpu_has_wide_vectors()) : fast_(wide_vectors), plain_(false) {}

  void start(const plane_resize& job) { vectors_ ? fast_.start(job) : plain_.start(job); }
  const tap_table& rows() const noexcept { return vectors_ ? fast_.rows() : plain_.rows(); }
  const tap_table& columns() const noexcept { return vectors_ ? fast_.columns() : plain_.columns(); }
  void render(const jpeg_planes& planes) { vectors_ ? fast_.render(planes) : plain_.render(planes); }

  void set_source(std::size_t left, std::size_t width) {
    vectors_ ? fast_.set_source(left, width) : plain_.set_source(left, width);
  }
  bool wants_rows() const noexcept { return vectors_ ? fast_.wants_rows() : plain_.wants_rows(); }
  std::uint8_t* next_row() noexcept { return vectors_ ? fast_.next_row() : plain_.next_row(); }
  void commit_row() noexcept { vectors_ ? fast_.commit_row() : plain_.commit_row(); }

 private:
  bool vectors_ = cpu_has_word_layer();
  basic_plane_resizer<vector_plane_kernels> fast_;
  basic_plane_resizer<portable_plane_kernels> plain_;
};

#elif defined __aarch64__

using plane_resizer = basic_plane_resizer<vector_plane_kernels>;

#else

using plane_resizer = basic_plane_resizer<portable_plane_kernels>;

#endif

}}}   // namespace millrace::detail
