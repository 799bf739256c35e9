// How closely the long walks look. All of them look at everything; where MILLRACE_BRIEF is set, as in the legs of the
// sanitizers, whose every step takes ten times as long and which look for other mistakes, at every n-th step.
#pragma once

#include <cstddef>
#include <cstdlib>

inline std::size_t stride(std::size_t when_brief) {
  static const bool brief = std::getenv("MILLRACE_BRIEF") != nullptr;
  return brief ? when_brief : 1;
}
