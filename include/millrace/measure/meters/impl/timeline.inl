// Defines what timeline.hpp declares.
#pragma once

#include <millrace/measure/meters/timeline.hpp>

#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::uint32_t timeline::add_track(std::string name) {
  tracks.push_back(std::move(name));
  return static_cast<std::uint32_t>(tracks.size() - 1);
}

MILLRACE_INLINE void timeline::add_spans(std::string name, const char* what, const std::vector<span_ring::span>& of,
                                         std::uint64_t start) {
  const std::uint32_t track = add_track(std::move(name));
  const auto since_start = [start](std::uint64_t at) { return static_cast<std::int64_t>(at - start); };
  for (const span_ring::span& s : of)
    if (s.start_ns >= start) spans.push_back({track, what, since_start(s.start_ns), since_start(s.end_ns), s.number});
}

}}}  // namespace millrace::detail
