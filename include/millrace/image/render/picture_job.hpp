// One image to render: its file, its plan, and the destination of its pixels.
//
//   mr::detail::picture_job job{.format = &mr::detail::jpeg_format, .data = &file, .options = &options,
//                              .header = &header, .target = {.data = row}};
//   mr::detail::render_pictures({&job, 1}, memory);
//
// Errors: data_error for a damaged file. Threads: any thread; each thread passes its own scratch.
#pragma once

#include <millrace/image/jpeg/jpeg_header.hpp>
#include <millrace/image/plan/padding.hpp>
#include <millrace/image/plan/row_operation.hpp>
#include <millrace/image/resize/pixel_target.hpp>
#include <millrace/image/resize/resize_plan.hpp>
#include <millrace/item/bytes.hpp>
#include <millrace/item/scratch.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// An image file format: its name, and the function that renders planned images from files of this format.
//
//   static constexpr mr::detail::picture_format jpegs{.name = "jpeg", .render = mr::detail::render_jpegs};
//   mr::picture p(file, mr::detail::picture_file{.format = &jpegs, .header = header, .options = options});
//   jpegs.render({&job, 1}, memory);
//
// A batch may contain images of several formats. The images of each format are rendered together.
// Errors: the errors of the format's decoder. `stage` of the error is the name of the format. Threads: any; each thread
// passes its own scratch.

struct picture_job;

/// The values of a pixel that are rendered.
enum class alpha_use : std::uint8_t {
  ignored,         ///< the colors
  premultiplied,   ///< the colors times alpha, rounded as in Pillow
  alone            ///< alpha, in all three channels
};

/// The renderer of one file format. The object must exist until the program ends.
struct picture_format {
  const char* name = "";   ///< the stage in the format's errors
  /// Renders jobs of this format.
  void (*render)(std::span<const picture_job> jobs, scratch& s) = nullptr;
  bool has_alpha = false;         ///< whether the format supports values other than alpha_use::ignored
  bool decodes_smaller = false;   ///< whether images of quality `fast` are decoded at a reduced size
};

/// The header of an image file, and how to render the file.
struct picture_file {
  const picture_format* format = nullptr;
  jpeg_header header{};               ///< width, height and orientation are set for all formats
  jpeg_options options{};             ///< other formats use only apply_orientation and limits
  std::uint32_t format_options = 0;   ///< options that only this format interprets
};

/// Encodes the color over which transparent pixels are composited, for picture_file::format_options. 0 means none.
constexpr std::uint32_t number_of(const std::optional<rgb_color>& background) noexcept {
  if (!background) return 0;
  const auto& [red, green, blue] = *background;
  return std::uint32_t{1} << 24 | std::uint32_t{red} << 16 | std::uint32_t{green} << 8 | blue;
}

/// Returns the color that number_of() encoded.
constexpr std::optional<rgb_color> background_of(std::uint32_t number) noexcept {
  if (number == 0) return std::nullopt;
  return rgb_color{static_cast<std::uint8_t>(number >> 16), static_cast<std::uint8_t>(number >> 8),
                   static_cast<std::uint8_t>(number)};
}

/// One image to render. All objects to which the job points must exist until the job is rendered.
struct picture_job {
  const picture_format* format = nullptr;
  const bytes* data = nullptr;
  const jpeg_options* options = nullptr;
  const jpeg_header* header = nullptr;
  std::uint32_t format_options = 0;       ///< options that only the format interprets
  alpha_use alpha = alpha_use::ignored;   ///< values other than `ignored` require picture_format::has_alpha
  resize_plan plan{};                     ///< crop and resize, in pixels of the decoded image
  unsigned eighths = 8;                   ///< size of the decoded image, in eighths of the stored size: 1, 2, 4 or 8
  pixel_target target{};
  const row_operation* operation = nullptr;   ///< runs on the rendered bytes; null for none
  std::optional<padding_of_plan> padding{};   ///< the padding around the rendered image
};

/// Decodes images, and writes the pixels of each to its target. Throws data_error if a file is damaged.
void render_pictures(std::span<const picture_job> jobs, scratch& s);

// Renders together the images of several rows and columns of a batch. A group is faster than single images, and has the
// same result.
// Errors: data_error for a damaged image. If several images are damaged, the error describes one of them. Lifetime: all
// objects to which the added jobs point must outlive render().
class picture_group {
 public:
  picture_group();
  picture_group(const picture_group&) = delete;
  picture_group& operator=(const picture_group&) = delete;
  ~picture_group();

  void clear() noexcept;
  void add(const picture_job& job);
  /// Calls change(item, row) after the images are rendered.
  void add_change(void (*change)(const void* item, void* row) noexcept, const void* item, void* row);
  void render(scratch& s) const;

 private:
  struct row_change {
    void (*change)(const void* item, void* row) noexcept;
    const void* item;
    void* row;
  };
  std::vector<picture_job> jobs_;
  std::vector<row_change> changes_;
};

/// Renders the images of one item into `row`. Calls item.join(), which adds these images to a group.
template <class Item>
void render_group_of_pictures(const Item& item, std::span<std::uint8_t> row, scratch& s) {
  auto& all = s.get<picture_group>();
  all.clear();
  item.join(all, row);
  all.render(s);
}

// Renders an image from the rows of pixels that a decoder delivers from top to bottom. Images of all formats except
// JPEG are rendered in this way.
//
//   struct gray_rows final : mr::detail::picture_job_rows {
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

// Fills the padding of an image's row and runs the image's operations. Then converts the row to floating point or to
// patches if the target needs it.
//
//   mr::detail::row_finisher last;                                  // reused for all images
//   resizer.start({.plan = job.plan, .target = last.target_of(job)});
//   resizer.render(planes);
//   last.finish(job, memory);
//
// A job is one image. If a job has no padding, no operations and no patches, it is rendered directly to its target, and
// finish() does nothing. Any other job is first rendered as 8-bit pixels. finish() converts them if the target has
// another format. Converted values equal the result of normalize().
// Errors: the errors of the operations. Threads: not thread-safe; one thread at a time. Memory: up to two 8-bit images.

struct picture_job;

/// Finishes the rendering of images, one after the other.
class row_finisher {
 public:
  /// Returns the target to which the job must be rendered before finish() is called.
  pixel_target target_of(const picture_job& job);
  /// Fills the padding and runs the operations of the job. Converts or copies the row to the job's target if
  /// target_of() returned another buffer.
  void finish(const picture_job& job, scratch& s);

 private:
  std::vector<std::uint8_t> bytes_;
  std::vector<std::uint8_t> rendered_;   // an image that finish() copies to its place in the padded row
};

/// Delivers the rows of a box of an image.
class picture_job_rows {
 public:
  virtual ~picture_job_rows() = default;
  /// Called once, before the first row. The box is columns [left, right) of rows [top, bottom) of the stored image.
  virtual void start(const plane_box& box) = 0;
  /// Writes the next row of the box.
  virtual void next(std::span<std::uint8_t> rgbx) = 0;
};

/// Delivers the rows of several files, one file after the other.
class row_decoder : public picture_job_rows {
 public:
  /// Begins the file of `job`. If `with_alpha` is true, the fourth byte of each pixel must be alpha.
  virtual void open(const picture_job& job, bool with_alpha) = 0;
  /// Called after the last row of the box.
  virtual void finish() {}
};

/// Renders a job from the rows that `rows` delivers.
void render_rows(const picture_job& job, picture_job_rows& rows, scratch& s);

/// Renders each job from the rows of its file. Adds the number of jobs that reused decoded rows to the event count
/// event_name::shared.
void render_each(std::span<const picture_job> jobs, row_decoder& from, scratch& s);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/image/render/impl/picture_job.inl>
#endif
