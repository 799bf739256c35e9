// How a JPEG is to be decoded, as whoever plans a picture chooses it.
//
//   auto p = mr::jpeg(r["jpg"], {.quality = mr::picture_quality::fast, .apply_orientation = true});
//   auto q = mr::jpeg(r["jpg"], {.decoder = mr::picture_decoder::libjpeg});      // to compare, or to rule one out
//
// Which decoder makes a picture does not change an `exact` one by a bit, nor a `fast` one that is decoded smaller.
// Errors: none. Threads: a value.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI {

enum class picture_quality : std::uint8_t {
  exact,   ///< within one level of decoding everything, and cropping and resizing that
  /// Decoded at 4/8, 2/8 or 1/8 of the size while the crop still covers the target on both axes, that is from 2, 4 and
  /// 8 times as large on. Of photographs such pictures differ from exact ones by 0.4 to 0.7 levels in the mean and by
  /// 42 at most, 0.5 to 2 % of the samples by more than 4 (PSNR 45 to 49 dB). Others, whose chroma is resized before
  /// there are colours, differ by 0.2 in the mean and by 21 at most.
  fast
};

enum class picture_decoder : std::uint8_t {
  automatic,   ///< the own one for files that it knows, where the processor is fast at it; libjpeg for all others
  own,         ///< on any processor; what it refuses is an error that says why
  libjpeg
};

struct jpeg_options {
  picture_quality quality = picture_quality::exact;
  picture_decoder decoder = picture_decoder::automatic;
  bool apply_orientation = false;                         ///< turn the picture as its EXIF tag says
  bool accept_damaged = false;                            ///< take what there is of a cut or corrupt file, and count it
  int max_scans = 100;                                    ///< of a progressive JPEG
  std::uint64_t max_pixels = 178'956'970;                 ///< width * height, as in Pillow
  std::size_t max_memory_bytes = std::size_t{512} << 20;  ///< that libjpeg may take for one picture
};

}}  // namespace millrace
