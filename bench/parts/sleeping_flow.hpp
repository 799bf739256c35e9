// A training whose every stage sleeps: a real session, with real threads and rings, whose bottleneck is known.
//
//   mr::flow_statistics f = bench::run_asleep({.workers = 4, .work_ns = 8e6, .step_ns = 20e6});
//   f.samples_per_s();                                    // of the batches after the warm-up
//
// A stage that oversleeps sleeps less the next time, so that times have the requested mean at any load of the machine.
// Copies and steps follow the emulated accelerator's schedule, and reads that share one pipe follow that of the pipe.
// Times are nanoseconds: of a read, of unpacking its data, of one sample's work, of a batch's copy and step.
// Errors: those of sessions. Threads: any number of runs at a time.
#pragma once

#include <millrace/measure/values/flow_statistics.hpp>

#include <cstddef>
#include <cstdint>

namespace bench {

struct sleeping_settings {
  std::size_t io_threads = 4, workers = 4, prefetch = 4, batch = 16;
  std::size_t device_slots = 0;   ///< 0: the step uses the host's slots, and nothing is copied
  std::size_t samples_per_read = 1, reads_per_shard = 16;
  std::size_t read_ahead_bytes = std::size_t{64} << 20;   ///< of samples of 100 kB
  bool one_pipe = false;                                  ///< reads are served one after the other
  double read_ns = 1e6, unpack_ns = 0, work_ns = 1e6, copy_ns = 0, step_ns = 1e6;
  double spread = 0.5;   ///< from mean x (1 - spread) to mean x (1 + spread), except for copies
  std::uint64_t seed = 1;
  std::size_t batches = 60;
};

millrace::flow_statistics run_asleep(const sleeping_settings& s);

}   // namespace bench
