// Waits for a condition instead of a time: on a busy machine a thread may have to wait long for a core.
#pragma once

#include <chrono>
#include <thread>

/// Whether the condition becomes true. The limit only guards against a test that would wait for ever.
template <class Condition>
bool eventually(Condition&& condition) {
  using clock = std::chrono::steady_clock;
  const clock::time_point limit = clock::now() + std::chrono::minutes(5);
  while (!condition()) {
    if (clock::now() > limit) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

/// Whether a trial that measures sleeps succeeds with one of five scales, 1 to 16. A wait for a core is a smaller part
/// of a longer sleep: a quiet machine needs one trial, and a busy one several. trial(scale) returns a bool.
template <class Trial>
bool at_some_scale(Trial&& trial) {
  for (int scale = 1; scale <= 16; scale *= 2)
    if (trial(scale)) return true;
  return false;
}
