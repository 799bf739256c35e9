// Renders an image from the rows of pixels that a decoder delivers from top to bottom. Images of all formats except
// JPEG are rendered in this way.
//
//   struct gray_rows final : mr::detail::pixel_rows {
//     void start(const mr::detail::plane_box& box) override { row = box.top; left = box.left; }
//     void next(std::span<std::uint8_t> rgbx) override { fill(rgbx, row++, left); }
//     std::size_t row = 0, left = 0;
//   };
//   gray_rows rows;
//   mr::detail::render_rows(job, rows, memory);             // crops, resizes, flips, runs the job's operations
//
// The decoder receives the box of pixels that the plan needs, and delivers it row by row from the top. The decoder need
// not read rows below the box. Each row has four bytes per pixel: red, green, blue, and alpha, which is used only if
// the job requests alpha. The result differs by at most 1 from Pillow's.
//
//   mr::detail::render_each(jobs, decoder, memory);         // decoder: a row_decoder
//
// Jobs (images to render) of the same file share one decoding of the smallest box that contains their boxes. Sharing
// does not change the result. If that box is damaged or needs more than 64 MiB, each job is decoded alone.
// Errors: the exceptions of the decoder; render_each() adds the location of the file. Threads: any thread; each thread
// has its own scratch.
#pragma once

#include <millrace/image/render/picture_job.hpp>
#include <millrace/image/resize/pixel_target.hpp>
#include <millrace/image/resize/resize_plan.hpp>
#include <millrace/item/scratch.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

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

/// Delivers the rows of a box of an image.
class pixel_rows {
 public:
  virtual ~pixel_rows() = default;
  /// Called once, before the first row. The box is columns [left, right) of rows [top, bottom) of the stored image.
  virtual void start(const plane_box& box) = 0;
  /// Writes the next row of the box.
  virtual void next(std::span<std::uint8_t> rgbx) = 0;
};

/// Delivers the rows of several files, one file after the other.
class row_decoder : public pixel_rows {
 public:
  /// Begins a file. The fourth byte of its pixels must be alpha if `with_alpha`.
  virtual void open(const picture_job& job, bool with_alpha) = 0;
  /// Called after the last row of the box.
  virtual void finish() {}
};

/// Renders a job from the rows that `rows` delivers.
void render_rows(const picture_job& job, pixel_rows& rows, scratch& s);

/// Renders each job from the rows of its file. Counts the jobs that used the decoded rows of another job.
void render_each(std::span<const picture_job> jobs, row_decoder& from, scratch& s);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/image/render/impl/pixel_rows.inl>
#endif
