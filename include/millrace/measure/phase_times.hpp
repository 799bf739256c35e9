// How a fused segment's time divides: into the maps, and the rendering of columns. For one seat.
//
//   phase_times::watch look(times);                 // of a claim; looks at one in eight, and there at the first group
//   ... maps ...  look.maps_done(now);  ... renders ...  look.rendered(now, samples);
//   times.add_to(parts, busy_ns);                  // the whole time, divided as what was looked at
//
// Errors: none. Threads: one on the seat at a time; add_to() from any.
#pragma once

#include <millrace/base/clock.hpp>
#include <millrace/measure/flow_figures.hpp>
#include <millrace/measure/histogram.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

/// A template only so that including it costs little.
template <class = void>
class alignas(64) basic_phase_times {
 public:
  /// Of the next claim: whether to look at it.
  bool next_claim() noexcept { return (claims_++ & 7) == 0; }

  void add(std::uint64_t maps_ns, std::uint64_t rendering_ns, std::size_t samples) noexcept {
    maps_ns_.record(maps_ns / samples);
    rendering_ns_.record(rendering_ns / samples);
  }

  /// Parts called so are added to, or made; `busy_ns` is all the seat's time.
  void add_to(stage_figures& s, const char* maps, const char* rendering) const {
    if (s.phases.empty()) s.phases = {{.name = maps}, {.name = rendering}};
    s.phases[0].service_ns += maps_ns_.snapshot();
    s.phases[1].service_ns += rendering_ns_.snapshot();
  }
  /// Once all seats were added: the stage's time, divided as the parts' samples say.
  static void divide(stage_figures& s) noexcept {
    double all = 0;
    for (const auto& p : s.phases) all += static_cast<double>(p.service_ns.sum());
    if (all <= 0) return;
    for (auto& p : s.phases)
      p.busy_ns = static_cast<std::uint64_t>(static_cast<double>(s.busy_ns) *
                                             static_cast<double>(p.service_ns.sum()) / all);
  }

 private:
  own_histogram maps_ns_, rendering_ns_;
  std::uint64_t claims_ = 0;   // of the worker only
};
using phase_times = basic_phase_times<>;

}}  // namespace millrace
