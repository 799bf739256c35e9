// Contains the timeline of a run, for reports and for Perfetto: spans on tracks, counters, and the delivered batches.
//
//   mr::timeline t = run.events();
//   const std::uint32_t steps = t.add_track("my steps");
//   t.spans.push_back({.track = steps, .name = "validation", .start_ns = 0, .end_ns = 1'880'000});
//   t.counters.push_back({.name = "loss", .at_ns = 0, .value = 2.31});
//   for (const mr::delivered_batch& b : t.deliveries) waits_ns.push_back(b.wait_ns);     // of the last 2048 batches
//
// A track is a thread or a stream. The spans of a track do not overlap unless they are nested. Times are in nanoseconds
// since the start of the run. Errors: none. Threads: not synchronized.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// A span of time on a track.
struct timeline_span {
  static constexpr std::uint64_t no_batch = ~std::uint64_t{0};

  std::uint32_t track = 0;
  std::string name{};
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint64_t batch = no_batch;   ///< number of the batch to which the span belongs
};

/// The value of a counter at one point in time.
struct timeline_counter {
  std::string name{};
  std::int64_t at_ns = 0;
  double value = 0;
};

/// The delivery of a batch to the trainer, and the fill levels at that time.
struct delivered_batch {
  std::int64_t at_ns = 0;
  std::uint64_t wait_ns = 0;   ///< time that the trainer waited in next()
  std::uint64_t step_ns = 0;   ///< time from this delivery to the next call of next(); 0 before that call
  std::size_t ready_slots = 0;
  std::size_t read_ahead_bytes = 0;
  std::uint64_t number = 0;   ///< number of the batch
};

/// The timeline of a run.
struct timeline {
  std::vector<std::string> tracks{};
  std::vector<timeline_span> spans{};
  std::vector<timeline_counter> counters{};
  std::vector<delivered_batch> deliveries{};

  /// Adds a track and returns its number.
  std::uint32_t add_track(std::string name);
};

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/measure/values/impl/timeline.inl>
#endif
