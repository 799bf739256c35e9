// The names of event counts (measure/values/event_counts.hpp) that report/ reads. image/ counts rendered JPEGs, io/
// counts entry points.
//
//   s.count(mr::detail::event_names::own_alone);
//
// Errors: none. Threads: constants.
#pragma once

#include <millrace/base/version.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail { namespace event_names {

inline constexpr char own_together[] = "JPEGs by the own decoder, several at once";
inline constexpr char own_alone[] = "JPEGs by the own decoder, alone";
inline constexpr char by_libjpeg[] = "JPEGs by libjpeg: ";   // followed by the reason
inline constexpr char smaller[] = "JPEGs decoded smaller";
inline constexpr char by_entries[] = "JPEGs whose entry points left out what no crop needs";
inline constexpr char by_restarts[] = "JPEGs whose restart markers left out what no crop needs";
inline constexpr char entries_refused[] = "JPEGs with entry points of another file";
inline constexpr char shared[] = "pictures made of the planes of another one";
inline constexpr char progressive[] = "progressive JPEGs";
inline constexpr char damaged[] = "damaged JPEGs accepted";
inline constexpr char warnings[] = "warnings of libjpeg";
inline constexpr char bytes[] = "bytes of JPEGs";
inline constexpr char fields_with_entries[] = "fields read with entry points";
inline constexpr char fields_refused[] = "fields whose entry points are not theirs, or damaged";
inline constexpr char pixels[] = "pixels of JPEGs";          // in the stored size, before any scaling

}}}}  // namespace millrace::detail::event_names
