// Repacks one image: resizes it if required, then writes a baseline file, with its own tables or shared ones.
//
//   repacked_picture repacked = repack_picture(record["jpg"], {.short_side = 256, .quality = 90});
//   repacked.file; repacked.shrunk;       // bytes; whether it was resized, or only transcoded
//   count_repacked_symbols(record["jpg"], {.short_side = 256}, counts);           // of the resulting file
//
// An image within the limits keeps its coefficients. A resized one keeps its aspect ratio, with sides rounded down. It
// is encoded at `quality` with 4:2:0 chroma. Gray stays gray, other colors become YCbCr, and the EXIF orientation stays
// in the metadata. Other markers are kept, except JFIF and Adobe, which describe the encoding, and the color profile of
// a CMYK image.
// Errors: data_error for a file that cannot be decoded. Threads: pure.
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
  std::size_t max_side = 0;     ///< pixels; 0: any
  std::size_t short_side = 0;   ///< pixels; 0: any
  int quality = 90;             ///< of resized images
  restart_choice restarts{};
  const transcode::jpeg_codes* codes = nullptr;   ///< of all images; null: each image has its own codes
};

/// Totals of all images, if restarts are enabled.
struct restart_gain {
  double bytes = 0;   ///< added by restarts
  std::uint64_t mcus = 0, intervals = 0;
  transcode::jpeg_walk walk{};   ///< of some random resized crops of each image

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
  std::size_t numerator = 1, denominator = 1;
  if (options.short_side != 0 && shorter > options.short_side) {
    numerator = options.short_side;
    denominator = shorter;
  }
  if (options.max_side != 0 && longer > options.max_side && options.max_side * denominator < numerator * longer) {
    numerator = options.max_side;
    denominator = longer;
  }
  const auto scaled = [&](std::size_t side) { return std::max<std::size_t>(1, side * numerator / denominator); };
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
  auto encoded = millrace::encode_jpeg(pixels, {.quality = quality, .optimize_tables = false});
  const auto markers = millrace::jpeg_metadata(file, {.color_profile = components != 4});
  constexpr std::ptrdiff_t after_jfif = 20;
  encoded.insert(encoded.begin() + after_jfif, markers.begin(), markers.end());
  return encoded;
}

/// Returns the file whose coefficients are kept: the input, or `smaller`, the resized image.
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

}   // namespace repack_detail

inline repacked_picture repack_picture(const millrace::bytes& file, const repack_options& options) {
  using namespace repack_detail;
  repacked_picture repacked{.before = millrace::read_jpeg_header(file)};
  std::vector<std::byte> smaller;
  auto coding = options.restarts.coding();
  coding.codes = options.codes;
  transcode::jpeg_transcoder picture(coefficients_of(file, repacked.before, options, smaller), coding);
  repacked.file = picture.write();
  repacked.shrunk = !smaller.empty();
  if (options.restarts.enabled()) repacked.restarts = gain_of(picture, file.size());
  return repacked;
}

/// Adds the symbols of the repacked image.
inline void count_repacked_symbols(const millrace::bytes& file, const repack_options& options,
                                   transcode::jpeg_symbol_counts& counts) {
  using namespace repack_detail;
  std::vector<std::byte> smaller;
  transcode::jpeg_transcoder picture(coefficients_of(file, millrace::read_jpeg_header(file), options, smaller),
                                     options.restarts.coding());
  picture.count_symbols(counts);
}
