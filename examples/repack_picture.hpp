// One picture of repack: made smaller if it is to be, then baseline, with tables of its own or shared ones.
//
//   repacked_picture made = repack_picture(record["jpg"], {.short_side = 256, .quality = 90});
//   made.file; made.shrunk;       // bytes; whether pixels were made anew, or only their coding
//   count_repacked_symbols(record["jpg"], {.short_side = 256}, counts);           // of the file that would be made
//
// What is not larger than the sides that are asked for keeps its coefficients. A smaller one keeps the aspect ratio,
// sides rounded down; it is coded at `quality` with 4:2:0 chroma, gray stays gray, other colors become YCbCr, and EXIF
// orientation is kept as a mark, not applied. Its markers are kept, but JFIF and Adobe, which say how it is coded, and
// the color profile of a CMYK picture. Errors: data_error for what cannot be decoded. Threads: pure.
#pragma once

#include "restart_choice.hpp"
#include "transcode/jpeg_transcoder.hpp"

#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/image/jpeg/jpeg_header.hpp>
#include <millrace/image/picture/picture.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

struct repack_options {
  std::size_t max_side = 0;       ///< pixels; 0: any
  std::size_t short_side = 0;     ///< pixels; 0: any
  int quality = 90;               ///< of pictures made smaller
  restart_choice restarts{};
  const transcode::jpeg_codes* codes = nullptr;   ///< of all pictures; null: each has its own
};

/// Sums over pictures, where restarts are asked for.
struct restart_gain {
  double bytes = 0;                 ///< that they add
  std::uint64_t mcus = 0, intervals = 0;
  transcode::jpeg_walk walk{};       ///< of some random resized crops of each picture

  restart_gain& operator+=(const restart_gain& more) {
    bytes += more.bytes;
    mcus += more.mcus;
    intervals += more.intervals;
    walk.all += more.walk.all;
    walk.without_restarts += more.walk.without_restarts;
    walk.with_restarts += more.walk.with_restarts;
    return *this;
  }
};

struct repacked_picture {
  std::vector<std::byte> file{};
  millrace::jpeg_header before{};
  bool shrunk = false;
  restart_gain restarts{};
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

/// The file whose coefficients are kept: the picture itself, or `smaller`, which is made of it.
inline std::span<const std::byte> coefficients_of(const millrace::bytes& file, const millrace::jpeg_header& header,
                                                  const repack_options& options, std::vector<std::byte>& smaller) {
  const picture_sides is{.width = header.width, .height = header.height}, to = sides_for(is, options);
  if (to == is) return file;
  smaller = shrink(file, to, options.quality);
  return smaller;
}

inline restart_gain gain_of(transcode::jpeg_transcoder& picture, std::uint64_t sample) {
  constexpr int crops = 16;
  restart_gain gain{.bytes = picture.restart_bytes()};
  millrace::rng random({.seed = 1, .sample = sample});
  for (int i = 0; i < crops; ++i) {
    const transcode::jpeg_walk crop = picture.walk_of_random_crop(random);
    gain += {.walk = crop};
    gain.mcus = crop.all;
  }
  const unsigned interval = picture.restart_interval();
  gain.intervals = interval == 0 ? 1 : (gain.mcus + interval - 1) / interval;
  return gain;
}

}  // namespace repack_detail

inline repacked_picture repack_picture(const millrace::bytes& file, const repack_options& options) {
  using namespace repack_detail;
  repacked_picture made{.before = millrace::read_jpeg_header(file)};
  std::vector<std::byte> smaller;
  auto coding = options.restarts.coding();
  coding.codes = options.codes;
  transcode::jpeg_transcoder picture(coefficients_of(file, made.before, options, smaller), coding);
  made.file = picture.write();
  made.shrunk = !smaller.empty();
  if (options.restarts.asked()) made.restarts = gain_of(picture, file.size());
  return made;
}

/// Adds the symbols that the picture will have.
inline void count_repacked_symbols(const millrace::bytes& file, const repack_options& options,
                                   transcode::jpeg_symbol_counts& counts) {
  using namespace repack_detail;
  std::vector<std::byte> smaller;
  transcode::jpeg_transcoder picture(coefficients_of(file, millrace::read_jpeg_header(file), options, smaller),
                                    options.restarts.coding());
  picture.count_symbols(counts);
}
