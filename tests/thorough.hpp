// How closely the long walks look. All of them look at everything; where MILLRACE_BRIEF is set, as in the legs of the
// sanitizers, whose every step takes ten times as long and which look for other mistakes, at every n-th step.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <initializer_list>
#include <vector>

inline std::size_t stride(std::size_t when_brief) {
  static const bool brief = std::getenv("MILLRACE_BRIEF") != nullptr;
  return brief ? when_brief : 1;
}

/// All of them, or every n-th, of which the first is one.
template <class T>
std::vector<T> some(std::size_t when_brief, std::initializer_list<T> all) {
  std::vector<T> chosen;
  for (std::size_t i = 0; i < all.size(); i += stride(when_brief)) chosen.push_back(all.begin()[i]);
  return chosen;
}
