// Fills the padding of an image's row and runs the image's operations. Then converts the row to floating point or to
// patches if the target needs it.
//
//   mr::detail::row_finisher last;                                  // reused for all images
//   resizer.start({.plan = job.plan, .target = last.target_of(job)});
//   resizer.render(planes);
//   last.finish(job, memory);
//
// A job is one image. A job without padding, operations and patches is rendered directly to its target, and finish()
// does nothing. Any other job is rendered as bytes, which finish() converts. Converted values equal the result of
// normalize().
// Errors: the errors of the operations. Threads: not thread-safe; one thread at a time. Memory: up to two images of
// bytes.
#pragma once

#include <millrace/image/resize/pixel_target.hpp>
#include <millrace/item/scratch.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

struct picture_job;

/// Finishes the rendering of images, one after the other.
class row_finisher {
 public:
  /// Returns the target to which the job must be rendered before finish() is called.
  pixel_target target_of(const picture_job& job);
  /// Runs the operations of the job. Converts or copies the row to the job's target if target_of() returned another
  /// buffer.
  void finish(const picture_job& job, scratch& s);

 private:
  std::vector<std::uint8_t> bytes_;
  std::vector<std::uint8_t> rendered_;   // an image that must be copied into its padding
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/image/render/impl/row_finisher.inl>
#endif
