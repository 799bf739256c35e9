// How a JPEG is to be decoded, as whoever plans a picture chooses it.
//
//   auto p = mr::jpeg(r["jpg"], {.quality = mr::picture_quality::fast, .apply_orientation = true});
//   auto q = mr::jpeg(r["jpg"], {.decoder = mr::picture_decoder::libjpeg});      // to compare, or to rule one out
//
// Which decoder makes a picture does not change an `exact` one by a bit. Errors: none. Threads: a value.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>

namespace millrace::inline MILLRACE_ABI {

enum class picture_quality : std::uint8_t { exact, fast };

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

}  // namespace millrace::inline MILLRACE_ABI
