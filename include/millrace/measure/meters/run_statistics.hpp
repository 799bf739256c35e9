// Completes the measurements of a run. Stores the measurements of the warm-up separately, because reports exclude them.
//
//   mr::detail::complete(statistics, mr::detail::process_statistics::now() - at_start);   // after the stages' add_to()
//   warm_ups.passed(batches, current_statistics);   // after each delivery; snapshots after batches 1, 4, 16
//   const mr::flow_statistics window = warm_ups.without(statistics);
//
// The warm-up is the first quarter of a run, rounded down to 0, 1, 4 or 16 batches. If the number of threads changes in
// the first quarter of a run, all batches before the change belong to the warm-up.
// Errors: none. Threads: the trainer calls passed(). Any thread may call the other members.
#pragma once

#include <millrace/measure/meters/read_meter.hpp>
#include <millrace/measure/values/flow_statistics.hpp>
#include <millrace/measure/values/process_statistics.hpp>

#include <mutex>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Adds the times of the I/O threads to the report as two stages: waiting for storage, and unpacking.
//
//   mr::detail::add_reading(statistics, {.reads = meter.snapshot(), .metered = true, .threads = 4});
//
// A metered source measures how long it waits for storage. The remaining time of the threads is processor time
// (decompression, parsing, checksums), which is reported as a separate stage. For any other source, the total time
// counts as reading.
// Errors: none. Threads: the functions are pure; any thread may call them.

/// The counts of all reads so far.
struct reading_counts {
  read_meter::statistics reads{};
  bool metered = false;        ///< if true, `reads` counts each read of storage; if false, each call of the source
  std::size_t threads = 1;     ///< threads that may read
  std::uint64_t open_ns = 0;   ///< time in which threads were allowed to read, summed over the threads
  std::uint64_t busy_ns = 0;   ///< time that all threads spent reading and unpacking
  std::uint64_t samples = 0, bytes = 0;
  std::uint64_t in_turn_ns = 0, in_turn_samples = 0, passed_on = 0;   ///< as in flow_statistics
};

/// Adds the stage "read" to `f` and, for a metered source, "unpack".
void add_reading(flow_statistics& f, const reading_counts& c);

/// Computes the measurements that depend on all stages, and adds the measurements of the process.
void complete(flow_statistics& f, const process_statistics& process);

/// Stores the measurements at each possible end of the warm-up.
class warm_up_statistics {
 public:
  /// Call it after each delivery with the number of delivered batches. If this number is 1, 4 or 16, stores the result
  /// of current_statistics().
  template <class Figures>
  void passed(std::uint64_t batches, const Figures& current_statistics) {
    if (batches != 1 && batches != 4 && batches != 16) return;
    restart(current_statistics());
  }
  /// Stores the measurements `now` for another possible end of the warm-up. Call it after the number of threads has
  /// changed.
  template <class Figures>
  MILLRACE_RARE void restart(Figures now) {
    const std::lock_guard lock(mutex_);
    all_.push_back(std::move(now));
  }
  /// Returns `f` without the warm-up. If the run has fewer than 4 batches, returns `f` unchanged.
  flow_statistics without(flow_statistics f) const;

 private:
  mutable std::mutex mutex_;
  std::vector<flow_statistics> all_;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/measure/meters/impl/run_statistics.inl>
#endif
