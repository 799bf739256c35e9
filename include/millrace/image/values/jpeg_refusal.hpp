// The reason why libjpeg, and not the built-in decoder, decodes an image.
//
//   const mr::jpeg_refusal why = mr::jpeg_refusal::sampling;
//   std::puts(mr::refusal_name(why));                   // "sampling"
//   events.count(text_of(mr::detail::event_of(why)));   // the event that counts such images
//
// Errors: none. Threads: pure functions; any thread.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/measure/values/event_names.hpp>

#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI {

/// The reason why the built-in decoder does not decode an image; libjpeg decodes it instead, and may report an error.
enum class jpeg_refusal : std::uint8_t {
  none,
  not_asked,        ///< the user requested libjpeg
  scaled,           ///< a size other than 1/8, 2/8, 4/8 or 8/8 of the stored size
  machine,          ///< a processor that the decoder does not support
  not_a_jpeg,       ///< not a JPEG, or cut short within its header
  process,          ///< arithmetic, lossless or hierarchical coding
  precision,        ///< 16-bit quantizers, or samples of more or less than 8 bits
  components,       ///< a number of components other than 1 or 3
  sampling,         ///< a sampling other than 4:4:4, 4:2:2, 4:4:0 or 4:2:0
  several_scans,    ///< more than one scan
  colors,           ///< three components that are not marked as YCbCr, such as RGB
  unusual_header,   ///< rare markers or values, including those that libjpeg warns about
  tables,           ///< missing or invalid tables
  damaged,          ///< invalid codes, truncated data, a missing marker, or bytes between restart intervals
  wild_values,      ///< impossible coefficients; they overflow differently in each decoder
  progressive,      ///< returned only by the baseline decoder; progressive_decoder.hpp then decodes the file
  unrefined,        ///< progressive, and the scans lack some coefficient bits; libjpeg smooths such images
  limits            ///< progressive, and exceeds the maximum number of scans or the memory limit
};

namespace detail {

/// Returns the event that counts images with this reason.
constexpr event_name event_of(jpeg_refusal why) noexcept {
  return static_cast<event_name>(static_cast<unsigned>(event_name::by_libjpeg) + static_cast<unsigned>(why));
}
static_assert(static_cast<std::size_t>(event_of(jpeg_refusal::limits)) + 1 == event_texts.size());

}   // namespace detail

/// Returns the name of the reason, for messages.
constexpr const char* refusal_name(jpeg_refusal why) noexcept { return detail::libjpeg_reason(detail::event_of(why)); }

}}   // namespace millrace
