// Shared by the tests of sessions: options that print nothing, and a source of numbers.
#pragma once

#include "../../thorough.hpp"

#include <millrace/run/session_options.hpp>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

inline millrace::session_options quiet(int threads, std::uint64_t epochs = 1) {
  return {.epochs = epochs, .threads = threads, .notice = millrace::quiet};
}

/// 0 .. count - 1.
inline std::vector<int> numbers(int count) {
  std::vector<int> v(static_cast<std::size_t>(count));
  std::iota(v.begin(), v.end(), 0);
  return v;
}
