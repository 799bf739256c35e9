// One picture of repack: made smaller if it is to be, then baseline, with tables of its own.
//
//   repacked_picture made = repack_picture(record["jpg"], {.short_side = 256, .quality = 90});
//   made.file; made.shrunk;       // bytes; whether pixels were made anew, or only their coding
//
// What is not larger than the sides that are asked for keeps its coefficients. A smaller one keeps the aspect ratio,
// sides rounded down; it is coded at `quality` with 4:2:0 chroma, gray stays gray, other colors become YCbCr, and EXIF
// orientation is kept as a mark, not applied. Its markers are kept, but JFIF and Adobe, which say how it is coded, and
// the color profile of a CMYK picture. Errors: data_error for what cannot be decoded. Threads: pure.
#pragma once

#include <millrace/image/jpeg_encoder.hpp>
#include <millrace/image/jpeg_header.hpp>
#include <millrace/image/jpeg_transcoder.hpp>
#include <millrace/image/picture.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

struct repack_options {
  std::size_t max_side = 0;       ///< pixels; 0: any
  std::size_t short_side = 0;     ///< pixels; 0: any
  int quality = 90;               ///< of pictures made smaller
  unsigned restarts_per_row = 0;
};

struct repacked_picture {
  std::vector<std::byte> file{};
  millrace::jpeg_header before{};
  bool shrunk = false;
};

namespace repack_detail {

struct picture_sides {
  std::size_t width = 0, height = 0;
  bool operator==(const picture_sides&) const = default;
};

inline picture_sides sides_for(const picture_sides& is, const repack_options& options) {
  const auto [shorter, longer] = std::minmax(is.width, is.height);
  std::size_t part = 1, whole = 1;
  if (options.short_side != 0 && shorter > options.short_side) {
    part = options.short_side;
    whole = shorter;
  }
  if (options.max_side != 0 && longer > options.max_side && options.max_side * whole < part * longer) {
    part = options.max_side;
    whole = longer;
  }
  const auto scaled = [&](std::size_t side) { return std::max<std::size_t>(1, side * part / whole); };
  return {.width = scaled(is.width), .height = scaled(is.height)};
}

inline millrace::image first_channel(const millrace::image& pixels) {
  millrace::image gray({pixels.shape()[0], pixels.shape()[1], 1});
  for (std::size_t i = 0; i < gray.size(); ++i) gray.data()[i] = pixels.data()[3 * i];
  return gray;
}

inline std::vector<std::byte> shrink(const millrace::bytes& file, const picture_sides& to, int quality) {
  const millrace::picture plan = millrace::jpeg(file).resize(to.height, to.width);
  const int components = plan.header().components;
  millrace::image pixels = plan.pixels();
  if (components == 1) pixels = first_channel(pixels);
  auto made = millrace::encode_jpeg(pixels, {.quality = quality, .optimize_tables = false});
  const auto markers = millrace::jpeg_metadata(file, {.color_profile = components != 4});
  constexpr std::ptrdiff_t behind_jfif = 20;
  made.insert(made.begin() + behind_jfif, markers.begin(), markers.end());
  return made;
}

}  // namespace repack_detail

inline repacked_picture repack_picture(const millrace::bytes& file, const repack_options& options) {
  using namespace repack_detail;
  repacked_picture made{.before = millrace::read_jpeg_header(file)};
  const picture_sides is{.width = made.before.width, .height = made.before.height}, to = sides_for(is, options);
  made.shrunk = to != is;
  const millrace::jpeg_transcode_options coding{.restarts_per_row = options.restarts_per_row};
  if (made.shrunk) made.file = millrace::transcode_jpeg(shrink(file, to, options.quality), coding);
  else made.file = millrace::transcode_jpeg(file, coding);
  return made;
}
