// The reason for which the built-in decoder leaves an image to libjpeg.
//
//   const mr::jpeg_refusal why = mr::jpeg_refusal::sampling;
//   std::puts(mr::refusal_name(why));                   // "sampling"
//   events.count(text_of(mr::detail::event_of(why)));   // the event that counts such images
//
// Errors: none. Threads: pure functions.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/measure/values/event_names.hpp>

#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI {

/// The reason for which the built-in decoder does not decode an image. The first values are for images that it does not
/// receive, the next ones for kinds of files that it does not support. The last ones are detected while decoding; then
/// libjpeg decides between pixels, a warning and an error.
enum class jpeg_refusal : std::uint8_t {
  none,
  not_asked,         ///< the user requested libjpeg
  scaled,            ///< a size other than 1/8, 2/8, 4/8 or 8/8 of the stored size
  machine,           ///< a processor that the decoder does not support
  not_a_jpeg,        ///< not a JPEG, or cut short within its header
  process,           ///< arithmetic, lossless, hierarchical
  precision,         ///< samples of other than 8 bits, or quantizers of 16 bits
  components,        ///< a number of components other than 1 or 3
  sampling,          ///< other than 4:4:4, 4:2:2, 4:4:0 or 4:2:0
  several_scans,     ///< more than one scan
  colors,           ///< RGB, or not certainly YCbCr
  unusual_header,    ///< rare markers or fields, or some that libjpeg warns about
  tables,            ///< missing or invalid tables
  damaged,           ///< bad codes, short data, a missing marker, bytes between the intervals
  wild_values,       ///< coefficients that no pixels produce: decoders overflow in different ways
  progressive,       ///< result of the baseline decoder; progressive/progressive_decoder.hpp decodes these
  unrefined,         ///< progressive, with bits of coefficients missing from all scans, which libjpeg smooths
  limits             ///< progressive, beyond the limit of scans or memory
};

namespace detail {

/// Returns the event that counts such images.
constexpr event_name event_of(jpeg_refusal why) noexcept {
  return static_cast<event_name>(static_cast<unsigned>(event_name::by_libjpeg) + static_cast<unsigned>(why));
}
static_assert(static_cast<std::size_t>(event_of(jpeg_refusal::limits)) + 1 == event_texts.size());

}  // namespace detail

/// Returns the reason, for messages.
constexpr const char* refusal_name(jpeg_refusal why) noexcept { return detail::libjpeg_reason(detail::event_of(why)); }

}}  // namespace millrace
