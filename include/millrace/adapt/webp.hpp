// Decodes WebP images with libwebp.
//
//   #include <millrace/adapt/webp.hpp>                                  // link with -lwebp
//   mr::picture p = mr::webp(r["webp"]).random_resized_crop(224, rng).random_flip(rng);
//   mr::picture q = mr::any_picture(r["jpg;png;webp"], {.also = &mr::webp_pictures});
//
// Opt-in: needs libwebp (libwebp-dev).
// Supports lossy and lossless files with one image. By default, alpha is omitted, and the pixels are identical to those
// of Pillow's convert("RGB"). If a background color is set, the image is composited over this color. mr::rgba_picture
// keeps alpha. libwebp decodes all rows up to the end of the crop, but converts only the pixels of the crop.
// Errors: data_error with shard, key and stage "webp" if the file is not a WebP file, is damaged, or is an animation.
// Damage after the last row of the crop can remain undetected. Threads: the rules of picture. Format: RFC 9649.
#pragma once

#if !__has_include(<webp/decode.h>)
#error "millrace: libwebp is not installed: apt-get install libwebp-dev"
#endif
#include <webp/decode.h>

#include <millrace/base/version.hpp>
#include <millrace/image/any_picture.hpp>
#include <millrace/image/jpeg/jpeg_header.hpp>
#include <millrace/image/picture/picture.hpp>
#include <millrace/image/plan/exif_orientation.hpp>
#include <millrace/image/render/picture_job.hpp>
#include <millrace/item/record.hpp>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of webp().
struct webp_options {
  std::optional<rgb_color> background{};   ///< composites the image over this color; if empty, alpha is omitted
  bool apply_orientation = false;          ///< rotates and mirrors the image according to its EXIF tag
  picture_limits limits{};                 ///< max_pixels: maximum number of pixels of the image
};

namespace detail { namespace webp_files {

[[noreturn]] inline void fail(const std::string& problem, const std::string& advice, const bytes& file) {
  error_location at{.stage = "webp"};
  at.complete(location_of(file));
  throw data_error(problem, advice, at);
}

inline const std::uint8_t* data_of(std::span<const std::byte> file) noexcept {
  return reinterpret_cast<const std::uint8_t*>(file.data());
}

[[noreturn]] inline void fail(VP8StatusCode status, const bytes& file) {
  constexpr const char* again = "Fetch the file again, or omit the sample";
  switch (status) {
    case VP8_STATUS_OUT_OF_MEMORY:
      throw io_error("libwebp cannot allocate memory for an image", "Free memory, or lower max_pixels",
                     {.stage = "webp"});
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED: fail("the WebP is truncated: it ends before the end of its image", again, file);
    case VP8_STATUS_UNSUPPORTED_FEATURE: fail("the WebP uses a feature that libwebp does not support", again, file);
    default: fail("the WebP is damaged: libwebp cannot decode it", again, file);
  }
}

/// Calls `visit` with the name and the payload of each complete chunk of the file, until `visit` returns true.
template <class Visit>
void for_each_chunk(std::span<const std::byte> file, const Visit& visit) {
  const auto number = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 4; i > 0; --i) value = value << 8 | std::to_integer<std::uint32_t>(file[at + i - 1]);
    return value;
  };
  for (std::size_t at = 12; at + 8 <= file.size();) {
    const std::size_t size = number(at + 4);
    if (size > file.size() - at - 8) return;
    const std::string_view name(reinterpret_cast<const char*>(file.data()) + at, 4);
    if (visit(name, file.subspan(at + 8, size))) return;
    at += 8 + size + size % 2;
  }
}

inline int orientation_of(std::span<const std::byte> file) {
  int orientation = 1;
  for_each_chunk(file, [&](std::string_view name, std::span<const std::byte> payload) {
    if (name != "EXIF") return false;
    constexpr std::size_t mark_bytes = 6;   // some writers put the Exif mark of JPEG before the TIFF header
    const bool marked = payload.size() >= mark_bytes && std::memcmp(payload.data(), "Exif\0\0", mark_bytes) == 0;
    const int value = tiff_orientation(marked ? payload.subspan(mark_bytes) : payload);
    if (value != 0) orientation = value;
    return true;
  });
  return orientation;
}

/// Returns the chunk with the colors of a lossy file, without alpha. Returns all bytes of a lossless file.
inline std::span<const std::byte> without_alpha(std::span<const std::byte> file) {
  std::span<const std::byte> image_bytes = file;
  for_each_chunk(file, [&](std::string_view name, std::span<const std::byte> payload) {
    if (name != "VP8 ") return false;
    image_bytes = payload;
    return true;
  });
  return image_bytes;
}

inline bool is_webp(std::span<const std::byte> file) noexcept {
  return file.size() >= 12 && std::memcmp(file.data(), "RIFF", 4) == 0 && std::memcmp(file.data() + 8, "WEBP", 4) == 0;
}

/// Decodes an image. start() decodes the complete crop, and next() returns the next row of the crop.
class webp_rows final : public row_decoder {
 public:
  void open(const picture_job& job, bool with_alpha) override {
    file_ = job.data;
    size_ = picture_size{.width = job.header->width, .height = job.header->height};
    background_ = background_of(job.format_options);
    with_alpha_ = with_alpha || background_;
  }

  void start(const plane_box& box) override {
    // libwebp interpolates chroma only within a crop. Therefore the crop for libwebp is larger than `box`. The top left
    // corner of the larger crop has even coordinates.
    constexpr std::size_t margin = 2;
    const auto before = [](std::size_t edge) { return edge < margin ? 0 : (edge - margin) / 2 * 2; };
    const std::size_t left = before(box.left), top = before(box.top);
    const std::size_t width = std::min(box.right + margin, size_.width) - left;
    const std::size_t height = std::min(box.bottom + margin, size_.height) - top;
    stride_ = 4 * width;
    next_ = (box.top - top) * stride_ + 4 * (box.left - left);
    pixels_.resize(height * stride_);

    WebPDecoderConfig config;
    WebPInitDecoderConfig(&config);   // fails only if the versions of header and library differ
    config.options.use_cropping = 1;
    config.options.crop_left = static_cast<int>(left);
    config.options.crop_top = static_cast<int>(top);
    config.options.crop_width = static_cast<int>(width);
    config.options.crop_height = static_cast<int>(height);
    config.output.colorspace = MODE_RGBA;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = pixels_.data();
    config.output.u.RGBA.stride = static_cast<int>(stride_);
    config.output.u.RGBA.size = pixels_.size();
    const std::span<const std::byte> coded = with_alpha_ ? std::span<const std::byte>(*file_) : without_alpha(*file_);
    const VP8StatusCode status = WebPDecode(data_of(coded), coded.size(), &config);
    WebPFreeDecBuffer(&config.output);
    if (status != VP8_STATUS_OK) fail(status, *file_);
  }

  void next(std::span<std::uint8_t> rgbx) override {
    std::memcpy(rgbx.data(), pixels_.data() + next_, rgbx.size());
    next_ += stride_;
    if (background_) composite(rgbx);
  }

 private:
  /// Composites pixels over the background, with the same arithmetic as png/png_decoder.hpp.
  void composite(std::span<std::uint8_t> rgba) const noexcept {
    for (std::size_t x = 0; x < rgba.size(); x += 4) {
      const unsigned alpha = rgba[x + 3];
      for (std::size_t c = 0; c < 3; ++c) {
        const unsigned sum = rgba[x + c] * alpha + (*background_)[c] * (255 - alpha) + 128;
        rgba[x + c] = static_cast<std::uint8_t>(((sum >> 8) + sum) >> 8);
      }
      rgba[x + 3] = 255;
    }
  }

  const bytes* file_ = nullptr;
  std::optional<rgb_color> background_{};
  bool with_alpha_ = false;
  picture_size size_{};
  std::size_t stride_ = 0, next_ = 0;
  std::vector<std::uint8_t> pixels_;
};

inline void render(std::span<const picture_job> jobs, scratch& s) {
  render_each(jobs, s.get<webp_rows>(), s);
  s.count("pictures by libwebp", jobs.size());
}

inline constexpr picture_format format{.name = "webp", .render = render, .has_alpha = true};

/// Reads the header. Throws data_error if the file is not a WebP file with one image.
inline picture read_with_background(bytes data, const jpeg_options& options,
                                    const std::optional<rgb_color>& background) {
  if (!is_webp(data))
    fail(sniff_format(data).empty()
             ? "a WebP begins with RIFF and WEBP, but these " + std::to_string(data.size()) + " bytes do not"
             : other_format_message(data, "a WebP"),
         std::string(hint_on_format(data).advice), data);
  WebPBitstreamFeatures features;
  const VP8StatusCode status = WebPGetFeatures(data_of(data), data.size(), &features);
  if (status != VP8_STATUS_OK) fail(status, data);
  if (features.has_animation != 0)
    fail("the WebP is an animation: expected one image", "Split it into frames before packing", data);
  picture_file file{.format = &format, .header = {}, .options = options, .format_options = number_of(background)};
  file.header.width = static_cast<std::size_t>(features.width);
  file.header.height = static_cast<std::size_t>(features.height);
  file.header.components = 3;
  if (options.apply_orientation) file.header.orientation = orientation_of(data);
  return {std::move(data), file};
}

inline picture read(bytes data, const jpeg_options& options) {
  return read_with_background(std::move(data), options, {});
}

}}   // namespace detail::webp_files

/// The format of WebP files, for any_picture_options::also.
inline constexpr picture_reader webp_pictures{.takes = detail::webp_files::is_webp, .read = detail::webp_files::read};

/// Returns a plan of the complete image in `data`. Reads only the header. Throws data_error if the bytes are not a WebP
/// file with one image, or if the image exceeds max_pixels.
inline picture webp(bytes data, const webp_options& options = {}) {
  return detail::webp_files::read_with_background(
      std::move(data), {.apply_orientation = options.apply_orientation, .limits = options.limits}, options.background);
}

}}   // namespace millrace
