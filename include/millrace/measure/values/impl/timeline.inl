// Definitions for timeline.hpp.
#pragma once

#include <millrace/measure/values/timeline.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE std::uint32_t timeline::add_track(std::string name) {
  tracks.push_back(std::move(name));
  return static_cast<std::uint32_t>(tracks.size() - 1);
}

}}   // namespace millrace
