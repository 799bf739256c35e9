// Definitions for phase_times.hpp.
#pragma once

#include <millrace/measure/meters/phase_times.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE void phase_times::add_to(stage_statistics& s, const char* maps, const char* rendering) const {
  if (s.phases.empty()) s.phases = {{.name = maps}, {.name = rendering}};
  s.phases[0].service_ns += maps_ns_.snapshot();
  s.phases[1].service_ns += rendering_ns_.snapshot();
}

MILLRACE_INLINE void phase_times::divide(stage_statistics& s) noexcept {
  double all = 0;
  for (const auto& p : s.phases) all += static_cast<double>(p.service_ns.sum());
  if (all <= 0) return;
  for (auto& p : s.phases)
    p.busy_ns = static_cast<std::uint64_t>(static_cast<double>(s.busy_ns) * static_cast<double>(p.service_ns.sum()) /
                                           all);
}

}}}   // namespace millrace::detail
