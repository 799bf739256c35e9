// What happened when: spans on tracks, and counters. For the Gantt of a report and for Perfetto.
//
//   mr::timeline t;
//   const std::uint32_t worker = t.add_track("worker 3");
//   t.spans.push_back({.track = worker, .name = "decode", .start_ns = 0, .end_ns = 1'880'000, .batch = 412});
//   t.counters.push_back({.name = "ready slots", .at_ns = 0, .value = 2});
//
// A track is a thread or a stream; its spans follow each other or nest. Times in nanoseconds since the run's start.
// Errors: none. Threads: a value.
#pragma once

#include <millrace/base/version.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace millrace::inline MILLRACE_ABI {

struct timeline_span {
  static constexpr std::uint64_t no_batch = ~std::uint64_t{0};

  std::uint32_t track = 0;
  std::string name{};
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint64_t batch = no_batch;   ///< that it worked for
};

struct timeline_counter {
  std::string name{};
  std::int64_t at_ns = 0;
  double value = 0;
};

struct timeline {
  std::vector<std::string> tracks{};
  std::vector<timeline_span> spans{};
  std::vector<timeline_counter> counters{};

  std::uint32_t add_track(std::string name) {
    tracks.push_back(std::move(name));
    return static_cast<std::uint32_t>(tracks.size() - 1);
  }
};

}  // namespace millrace::inline MILLRACE_ABI
