// What the I/O threads did, as stages of the report: waiting for storage, and unpacking what came.
//
//   add_reading(figures, {.reads = meter.snapshot(), .metered = true, .threads = 4, ...});
//
// A source that has its reads watched says when it waits for storage; the rest of the threads' time is processor time
// (decompression, parsing, checksums), which is a stage of its own. Of any other source all its time counts as reading.
// Errors: none. Threads: a pure function.
#pragma once

#include <millrace/measure/flow_figures.hpp>
#include <millrace/measure/read_meter.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

/// What was read so far.
struct reading_counts {
  read_meter::figures reads{};
  bool metered = false;         ///< reads are those of the source itself, not whole turns at it
  std::size_t threads = 1;      ///< that may read
  std::uint64_t open_ns = 0;    ///< that they might have read, all together
  std::uint64_t busy_ns = 0;    ///< of all threads, reading and unpacking
  std::uint64_t samples = 0, bytes = 0;
  std::uint64_t in_turn_ns = 0, in_turn_samples = 0, passed_on = 0;   ///< as in flow_figures
};

/// A template only so that including it costs little.
template <class = void>
void add_reading(flow_figures& f, const reading_counts& c) {
  const std::uint64_t all_ns = c.open_ns, read_ns = std::min(c.reads.busy_ns, all_ns);
  const std::uint64_t busy_ns = std::clamp(c.busy_ns, read_ns, all_ns);
  stage_figures read{.name = "read", .kind = stage_kind::read, .seats = c.threads, .busy_ns = read_ns};
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
  stage_figures unpack{.name = "unpack", .kind = stage_kind::unpack, .seats = c.threads, .busy_ns = busy_ns - read_ns};
  unpack.starved_ns = read_ns;
  unpack.blocked_ns = read.blocked_ns;
  unpack.items = c.samples;
  unpack.bytes = c.bytes;
  f.stages.push_back(unpack);
}

}}  // namespace millrace
