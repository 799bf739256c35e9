// A file format of pictures: its name, and the function that renders planned pictures of it.
//
//   static constexpr mr::detail::picture_format jpegs{.name = "jpeg", .render = mr::detail::render_jpegs};
//   mr::picture p(file, mr::detail::picture_file{.format = &jpegs, .header = header, .options = options});
//   jpegs.render({&job, 1}, memory);
//
// A batch may hold pictures of several formats. It renders those of each format together.
// Errors: those of the format, with its name as their stage. Threads: constant; each thread has a scratch of its own.
#pragma once

#include <millrace/image/jpeg_header.hpp>
#include <millrace/image/jpeg_options.hpp>
#include <millrace/item/scratch.hpp>

#include <cstdint>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

struct picture_job;

/// The renderer of one file format. It lives as long as the program.
struct picture_format {
  const char* name = "";   ///< the stage of its errors
  /// Renders jobs of this format.
  void (*render)(std::span<const picture_job> jobs, scratch& s) = nullptr;
};

/// A file of a picture, as its header describes it, and how to render it.
struct picture_file {
  const picture_format* format = nullptr;
  jpeg_header header{};    ///< width, height and orientation are those of any format
  jpeg_options options{};  ///< other formats use its orientation and its limit of pixels
  std::uint32_t format_options = 0;   ///< of the format's own, in a number that it can read
};

/// Renders JPEGs.
void render_jpegs(std::span<const picture_job> jobs, scratch& s);

inline constexpr picture_format jpeg_format{.name = "jpeg", .render = render_jpegs};

}}}  // namespace millrace::detail
