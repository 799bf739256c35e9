// Runs an image's operations on its row, and then makes numbers of it where those are wanted.
//
//   mr::detail::row_finisher last;                                  // kept from image to image
//   resizer.start({.plan = job.plan, .target = last.target_of(job)});
//   resizer.render(planes);
//   last.finish(job, memory);
//
// A job without operations writes to its target at once, and finish() does nothing. A job with operations is rendered
// as bytes; numbers are made of them at the end. They are the numbers that normalize() makes of the same bytes.
// Errors: those of the operations. Threads: one at a time. Memory: one row of bytes.
#pragma once

#include <millrace/image/resize/pixel_target.hpp>
#include <millrace/item/scratch.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

struct picture_job;

/// Ends the rendering of images, one after the other.
class row_finisher {
 public:
  /// Returns where to render a job before finish().
  pixel_target target_of(const picture_job& job);
  /// Runs the operations of the job, and writes its target if that has not been done.
  void finish(const picture_job& job, scratch& s);

 private:
  std::vector<std::uint8_t> bytes_;
};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/image/render/impl/row_finisher.inl>
#endif
