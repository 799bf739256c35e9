// What shim.cpp and the driver share: a file of this layout that both have mapped, so that it tells of a crash as well.
//
//   fault_state* state = ...;      // the file that FAULTS_STATE names, as faults.py has made it
//   state->calls                   // calls of the chosen function from our own code since faults_arm()
//   state->fired                   // how many of them have failed; frames[] is where the first one was made
#pragma once

#include <atomic>
#include <cstdint>

struct fault_state {
  static constexpr std::size_t max_frames = 24;

  std::atomic<std::uint64_t> calls, fired, frame_count;
  std::uint64_t frames[max_frames];   // addresses in the file of the program, the innermost first
};
static_assert(sizeof(fault_state) == 8 * (3 + fault_state::max_frames), "faults.py reads words");
