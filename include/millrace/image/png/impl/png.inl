// Definitions for png.hpp.
#pragma once

#include <millrace/image/png/png.hpp>

#include <millrace/base/error.hpp>
#include <millrace/image/jpeg/jpeg_header.hpp>
#include <millrace/image/plan/exif_orientation.hpp>
#include <millrace/image/png/png_decoder.hpp>
#include <millrace/image/render/picture_job.hpp>
#include <millrace/item/record.hpp>

#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail { namespace png_files {

/// Delivers the rows of a decoder that is reused for all images.
class rows final : public row_decoder {
 public:
  void open(const picture_job& job, bool with_alpha) override {
    const auto background = background_of(job.format_options);
    options_ = png_pixel_options{.layout = with_alpha ? png_layout::rgba : png_layout::rgbx,
                                 .composite = background.has_value(),
                                 .background = background.value_or(rgb_color{})};
    decoder_.open(*job.data, {.max_pixels = job.options->limits.max_pixels});
  }

  void start(const plane_box& box) override {
    decoder_.start({.left = box.left, .top = box.top, .right = box.right, .bottom = box.bottom}, options_);
  }
  void next(std::span<std::uint8_t> rgbx) override { decoder_.next_to(rgbx.data()); }
  void finish() override { decoder_.finish(); }

 private:
  png_decoder decoder_;
  png_pixel_options options_;
};

MILLRACE_INLINE void render(std::span<const picture_job> jobs, scratch& s) {
  render_each(jobs, s.get<rows>(), s);
  s.count("PNGs", jobs.size());
}

inline constexpr picture_format format{.name = "png", .render = render, .has_alpha = true};

MILLRACE_INLINE picture_file read(const bytes& data, const png_options& options) {
  const std::string_view format_name = sniff_format(data);
  if (!format_name.empty() && format_name != "a PNG")
    throw_bad_png(other_format_message(data, "a PNG"), hint_on_format(data).advice);
  const png_header header = read_png_header(data, {.max_pixels = options.limits.max_pixels});
  constexpr std::size_t longest = 65'535;
  if (header.width > longest || header.height > longest)
    throw_bad_png("the PNG is too large: got " + std::to_string(header.width) + " x " + std::to_string(header.height) +
                      " pixels, expected at most " + std::to_string(longest) + " per side",
                  "Cut the image into tiles before packing");
  picture_file file{.format = &format,
                    .header = {},
                    .options = {.limits = options.limits},
                    .format_options = number_of(options.background)};
  file.header.width = header.width;
  file.header.height = header.height;
  file.header.components = static_cast<int>(header.channels());
  file.options.apply_orientation = options.apply_orientation;
  if (const int orientation = tiff_orientation(header.exif); orientation != 0) file.header.orientation = orientation;
  return file;
}

}}   // namespace detail::png_files

MILLRACE_INLINE bool detail::is_png(std::span<const std::byte> file) noexcept {
  // The rest of the signature shows how a file was damaged.
  return file.size() > 4 && std::memcmp(file.data(), "\x89PNG", 4) == 0;
}

MILLRACE_INLINE picture png(bytes data, const png_options& options) {
  detail::picture_file file;
  try {
    file = detail::png_files::read(data, options);
  } catch (error& e) {
    e.locate(detail::location_of(data));
    throw;
  }
  return {std::move(data), file};
}

}}   // namespace millrace
