// Measures how the time of a segment (stages that run together) is divided between the maps and the rendering of
// columns. Each worker has a phase_times object. A claim consists of the samples that a worker receives at once.
//
//   const bool measure = times.next_claim();                 // true for one claim in eight
//   if (measure) times.add(maps_ns, rendering_ns, samples);   // times of its first group (samples rendered together)
//   times.add_to(stage, "map", "decode");                    // call it for each worker
//   mr::detail::phase_times::divide(stage);                   // call it once; it divides the stage's busy time
//
// Errors: none. Threads: one worker at a time calls next_claim() and add(); any thread calls add_to().
#pragma once

#include <millrace/base/clock.hpp>
#include <millrace/measure/values/flow_statistics.hpp>
#include <millrace/measure/values/histogram.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Phase times of one worker.
class alignas(64) phase_times {
 public:
  /// Returns whether the worker should measure the next claim.
  bool next_claim() noexcept { return (claims_++ & 7) == 0; }

  /// Records the times for a group of samples.
  void add(std::uint64_t maps_ns, std::uint64_t rendering_ns, std::size_t samples) noexcept {
    maps_ns_.record(maps_ns / samples);
    rendering_ns_.record(rendering_ns / samples);
  }

  /// Adds this worker's times to the two phases of `s`. If `s` has no phases, creates both phases. `maps` and
  /// `rendering` are the names of the phases.
  void add_to(stage_statistics& s, const char* maps, const char* rendering) const;
  /// Divides the stage's busy time among its phases in the measured proportion. Call this function after the times of
  /// all workers were added.
  static void divide(stage_statistics& s) noexcept;

 private:
  own_histogram maps_ns_, rendering_ns_;
  std::uint64_t claims_ = 0;   // used only by the worker
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/measure/meters/impl/phase_times.inl>
#endif
