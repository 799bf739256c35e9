// The state that shim.cpp shares with the driver: a file that both map, which therefore survives a crash.
//
//   fault_state* state = ...;      // the file that FAULTS_STATE names; faults.py creates it
//   state->calls                   // calls of the selected function from our own code since faults_arm()
//   state->fired                   // number of failed ones; frames[] is the stack of the first
#pragma once

#include <atomic>
#include <cstdint>

struct fault_state {
  static constexpr std::size_t max_frames = 24;

  std::atomic<std::uint64_t> calls, fired, frame_count;
  std::uint64_t frames[max_frames];   // addresses in the file of the program, the innermost first
};
static_assert(sizeof(fault_state) == 8 * (3 + fault_state::max_frames), "faults.py reads words");
