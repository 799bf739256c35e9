// The interface of an accelerator for benchmarks of overlap: steps of a chosen length, a blocking copy, busy times.
//
//   std::unique_ptr<bench::accelerator> chip = ...;        // emulated_accelerator.hpp, gpu_accelerator.hpp
//   flow | mr::to_device({.device = chip->device(), .stream = chip->stream()});
//   chip->launch_step(0.02);                               // queues 20 ms of work; returns at once
//   chip->wait();                                          // as a trainer that reads its loss does
//   for (const bench::span& s : chip->take_steps()) ...    // when each step ran
//
// Times are seconds on the accelerator's own clock. Threads: one, the trainer's.
#pragma once

#include <millrace/device/device.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace bench {

struct span {
  double start_s = 0, end_s = 0;
};

class accelerator {
 public:
  virtual ~accelerator() = default;

  /// Its description, for the first line of the output.
  virtual std::string description() const = 0;
  virtual millrace::device device() = 0;
  /// The stream of the steps.
  virtual millrace::stream_view stream() = 0;

  virtual void launch_step(double seconds) = 0;
  /// Copies from pageable memory into memory of the accelerator; returns when the copy is complete.
  virtual void copy_and_wait(const void* from, std::size_t bytes) = 0;
  /// Waits until every launched step is done.
  virtual void wait() = 0;
  /// Returns the steps since the last call, in order. Call wait() first.
  virtual std::vector<span> take_steps() = 0;
};

/// Shares of the time from the start of step `first` to the start of the last one: complete periods, so that neither
/// the run's beginning nor its end counts.
struct occupancy {
  double wall_s = 0, busy_s = 0;
  std::size_t steps = 0;

  double idle_share() const { return 1 - busy_s / wall_s; }
  double period_s() const { return wall_s / static_cast<double>(steps); }
};

inline occupancy occupancy_of(const std::vector<span>& steps, std::size_t first) {
  occupancy o{.wall_s = steps.back().start_s - steps[first].start_s, .steps = steps.size() - 1 - first};
  for (std::size_t i = first; i + 1 < steps.size(); ++i) o.busy_s += steps[i].end_s - steps[i].start_s;
  return o;
}

}   // namespace bench
