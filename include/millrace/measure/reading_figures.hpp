// Turns the counts of the I/O threads into stages of the report: waiting for storage, and unpacking.
//
//   add_reading(figures, {.reads = meter.snapshot(), .metered = true, .threads = 4, ...});
//
// A metered source tells when it waits for storage. The remaining time of its threads is processor time (decompression,
// parsing, checksums), which is a stage of its own. For any other source, all of its time counts as reading.
// Errors: none. Threads: a pure function.
#pragma once

#include <millrace/measure/flow_figures.hpp>
#include <millrace/measure/read_meter.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Counts of the reading so far.
struct reading_counts {
  read_meter::figures reads{};
  bool metered = false;         ///< `reads` are the source's own reads, not whole calls of the source
  std::size_t threads = 1;      ///< threads that may read
  std::uint64_t open_ns = 0;    ///< time in which threads were allowed to read, summed over the threads
  std::uint64_t busy_ns = 0;    ///< time that all threads spent reading and unpacking
  std::uint64_t samples = 0, bytes = 0;
  std::uint64_t in_turn_ns = 0, in_turn_samples = 0, passed_on = 0;   ///< as in flow_figures
};

/// Adds the stage "read" to `f` and, for a metered source, "unpack". A template only to keep compile times low.
template <class = void>
void add_reading(flow_figures& f, const reading_counts& c) {
  const std::uint64_t all_ns = c.open_ns, read_ns = std::min(c.reads.busy_ns, all_ns);
  const std::uint64_t busy_ns = std::clamp(c.busy_ns, read_ns, all_ns);
  stage_figures read{.name = "read", .kind = stage_kind::read, .concurrency = c.threads, .busy_ns = read_ns};
  read.blocked_ns = all_ns - busy_ns;
  read.items = c.samples;
  read.bytes = c.metered ? c.reads.bytes : c.bytes;
  read.service_ns = c.reads.service_ns;
  f.stages.push_back(read);
  f.reads_at_once = c.reads.levels;
  f.in_turn_ns = c.in_turn_ns;
  f.in_turn_samples = c.in_turn_samples;
  f.passed_on_samples = c.passed_on;
  if (!c.metered) return;
  stage_figures unpack{.name = "unpack", .kind = stage_kind::unpack, .concurrency = c.threads,
                       .busy_ns = busy_ns - read_ns};
  unpack.starved_ns = read_ns;
  unpack.blocked_ns = read.blocked_ns;
  unpack.items = c.samples;
  unpack.bytes = c.bytes;
  f.stages.push_back(unpack);
}

}}}  // namespace millrace::detail
