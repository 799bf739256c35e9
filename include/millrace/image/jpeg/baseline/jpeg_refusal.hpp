// Says why the built-in decoder leaves a picture to libjpeg.
//
//   const mr::detail::jpeg_refusal why = mr::detail::jpeg_refusal::sampling;
//   std::puts(mr::detail::refusal_name(why));     // "sampling"
//   events.count(mr::detail::count_name(why));    // the event that counts such pictures
//
// Errors: none. Threads: pure functions.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/measure/values/event_names.hpp>

#include <cstdint>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Says why the built-in decoder does not decode a picture. The first values are for pictures that it is not given. The
/// next ones are for kinds of files that it does not support. The last ones are found while decoding. Then libjpeg has
/// to decide between pixels, a warning and an error.
enum class jpeg_refusal : std::uint8_t {
  none,
  not_asked,         ///< the user asked for libjpeg
  scaled,            ///< a size other than 1/8, 2/8, 4/8 or 8/8 of the picture's own
  machine,           ///< a processor that the decoder does not support
  not_a_jpeg,        ///< not a JPEG, or cut short within its header
  process,           ///< arithmetic, lossless, hierarchical
  precision,         ///< samples of other than 8 bits, or quantizers of 16 bits
  components,        ///< a number of components other than 1 or 3
  sampling,          ///< other than 4:4:4, 4:2:2, 4:4:0 or 4:2:0
  several_scans,     ///< more than one scan
  colors,           ///< RGB, or nothing that surely says YCbCr
  unusual_header,    ///< markers or fields that are rare, or that libjpeg warns of
  tables,            ///< missing or impossible
  damaged,           ///< bad codes, short data, a missing marker, something between the intervals
  wild_values,       ///< coefficients beyond those of any pixels: decoders overflow in different ways
  progressive,       ///< what the decoder of baseline files says; progressive/progressive_decoder.hpp takes them
  unrefined,         ///< progressive, with bits of coefficients in no scan: libjpeg smooths what is missing
  limits             ///< progressive, beyond the limit of scans or memory
};

/// Returns the event name that counts such pictures.
constexpr const char* count_name(jpeg_refusal why) noexcept {
  switch (why) {
    case jpeg_refusal::none: return "JPEGs by libjpeg: none";
    case jpeg_refusal::not_asked: return "JPEGs by libjpeg: as asked";
    case jpeg_refusal::scaled: return "JPEGs by libjpeg: size";
    case jpeg_refusal::machine: return "JPEGs by libjpeg: processor";
    case jpeg_refusal::not_a_jpeg: return "JPEGs by libjpeg: no JPEG";
    case jpeg_refusal::process: return "JPEGs by libjpeg: arithmetic or lossless";
    case jpeg_refusal::precision: return "JPEGs by libjpeg: precision";
    case jpeg_refusal::components: return "JPEGs by libjpeg: components";
    case jpeg_refusal::sampling: return "JPEGs by libjpeg: sampling";
    case jpeg_refusal::several_scans: return "JPEGs by libjpeg: several scans";
    case jpeg_refusal::colors: return "JPEGs by libjpeg: colour space";
    case jpeg_refusal::unusual_header: return "JPEGs by libjpeg: unusual header";
    case jpeg_refusal::tables: return "JPEGs by libjpeg: tables";
    case jpeg_refusal::damaged: return "JPEGs by libjpeg: damaged";
    case jpeg_refusal::wild_values: return "JPEGs by libjpeg: wild values";
    case jpeg_refusal::progressive: return "JPEGs by libjpeg: progressive";
    case jpeg_refusal::unrefined: return "JPEGs by libjpeg: progressive, scans left out";
    case jpeg_refusal::limits: return "JPEGs by libjpeg: progressive, beyond a limit";
  }
  return "JPEGs by libjpeg: unknown";
}
static_assert(std::string_view(count_name(jpeg_refusal::none)).starts_with(event_names::by_libjpeg));

/// Returns the reason without the event name's prefix, for messages.
constexpr const char* refusal_name(jpeg_refusal why) noexcept {
  return detail::count_name(why) + std::string_view(detail::event_names::by_libjpeg).size();
}

}}}  // namespace millrace::detail
