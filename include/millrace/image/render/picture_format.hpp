// An image file format: its name, and the function that renders planned images in this format.
//
//   static constexpr mr::detail::picture_format jpegs{.name = "jpeg", .render = mr::detail::render_jpegs};
//   mr::picture p(file, mr::detail::picture_file{.format = &jpegs, .header = header, .options = options});
//   jpegs.render({&job, 1}, memory);
//
// A batch may contain images of several formats. The images of each format are rendered together.
// Errors: the errors of the format's decoder. `stage` of the error is the name of the format. Threads: any; each thread
// passes its own scratch.
#pragma once

#include <millrace/image/jpeg/jpeg_header.hpp>
#include <millrace/image/jpeg/jpeg_options.hpp>
#include <millrace/image/plan/rgb_color.hpp>
#include <millrace/item/scratch.hpp>

#include <cstdint>
#include <optional>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

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

}}}   // namespace millrace::detail
