// The density of the long tests. They check everything; with MILLRACE_BRIEF, as in the legs of the sanitizers, which
// are ten times slower and search for other mistakes, they check every n-th step.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <initializer_list>
#include <vector>

inline std::size_t stride(std::size_t when_brief) {
  static const bool brief = std::getenv("MILLRACE_BRIEF") != nullptr;
  return brief ? when_brief : 1;
}

/// All of them, or every n-th, starting with the first.
template <class T>
std::vector<T> some(std::size_t when_brief, std::initializer_list<T> all) {
  std::vector<T> result;
  for (std::size_t i = 0; i < all.size(); i += stride(when_brief)) result.push_back(all.begin()[i]);
  return result;
}
