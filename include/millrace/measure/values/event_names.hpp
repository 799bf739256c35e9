// Defines the names of the events that the library counts (measure/values/event_counts.hpp) and that report/ reads. The
// code in image/ counts rendered JPEGs. The code in io/ counts fields with entry points (positions at which a decoder
// may start).
//
//   s.count(mr::detail::text_of(mr::detail::event_name::own_alone));   // `s` is a mr::scratch
//   mr::detail::event_of_text(c.what) == mr::detail::event_name::own_alone;   // `c` is an mr::event_count
//
// Errors: none. Threads: the functions are pure; any thread may call them.
#pragma once

#include <millrace/base/version.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// clang-format off
/// The number of an event. A jpeg_refusal is the reason why the built-in decoder refused a JPEG, which libjpeg then
/// decoded. The event for the reason with the value v has the number by_libjpeg + v.
enum class event_name : std::uint8_t {
  own_together, own_alone,              ///< JPEGs decoded by the built-in decoder: several at once; one alone
  smaller,
  by_entries, by_restarts,              ///< crops accelerated by entry points; crops accelerated by restart markers
  entries_refused, shared, progressive, damaged, warnings,
  bytes, pixels,                        ///< bytes of the files; pixels at the stored size
  fields_with_entries, fields_refused,
  by_libjpeg,
  none = 0xff                           ///< an event that this list does not contain
};
// clang-format on

// clang-format off
/// The texts of the events, in the order of event_name.
inline constexpr std::array event_texts{
    "JPEGs by the built-in decoder, several at once", "JPEGs by the built-in decoder, alone",
    "JPEGs decoded smaller",
    "JPEG crops accelerated by entry points", "JPEG crops accelerated by restart markers",
    "JPEGs with entry points of another file", "images rendered from the planes of another image", "progressive JPEGs",
    "damaged JPEGs accepted", "warnings of libjpeg",
    "bytes of JPEGs", "pixels of JPEGs",
    "fields read with entry points", "fields with wrong or damaged entry points",
    "JPEGs by libjpeg: none", "JPEGs by libjpeg: as requested", "JPEGs by libjpeg: size", "JPEGs by libjpeg: processor",
    "JPEGs by libjpeg: not a JPEG", "JPEGs by libjpeg: arithmetic or lossless", "JPEGs by libjpeg: precision",
    "JPEGs by libjpeg: components", "JPEGs by libjpeg: sampling", "JPEGs by libjpeg: several scans",
    "JPEGs by libjpeg: color space", "JPEGs by libjpeg: unusual header", "JPEGs by libjpeg: tables",
    "JPEGs by libjpeg: damaged", "JPEGs by libjpeg: extreme values", "JPEGs by libjpeg: progressive",
    "JPEGs by libjpeg: progressive, scans omitted", "JPEGs by libjpeg: progressive, beyond a limit"};
// clang-format on

/// Returns the text of an event, which must not be `none`.
constexpr const char* text_of(event_name name) noexcept { return event_texts[static_cast<std::size_t>(name)]; }

/// Returns the event that has this text, or `none` if no event has this text.
constexpr event_name event_of_text(std::string_view text) noexcept {
  for (std::size_t i = 0; i < event_texts.size(); ++i)
    if (text == event_texts[i]) return static_cast<event_name>(i);
  return event_name::none;
}

/// Returns the reason why libjpeg decoded a JPEG. Returns null if the event has another meaning.
constexpr const char* libjpeg_reason(event_name name) noexcept {
  if (name < event_name::by_libjpeg || name == event_name::none) return nullptr;
  return text_of(name) + std::string_view("JPEGs by libjpeg: ").size();
}

}}}   // namespace millrace::detail
