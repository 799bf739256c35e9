// Definitions for worker_times.hpp.
#pragma once

#include <millrace/measure/meters/worker_times.hpp>

#include <algorithm>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE void worker_times::add_to(stage_statistics& s, std::uint64_t now_ns) const noexcept {
  std::uint64_t starved = starved_ns_.load(std::memory_order_acquire);
  std::uint64_t blocked = blocked_ns_.load(std::memory_order_acquire);
  const std::uint64_t since = idle_since_ns_.load(std::memory_order_acquire);
  if (const waits_for what = waiting_for_; since != 0 && since < now_ns && what != waits_for::nothing)
    (what == waits_for::space ? blocked : starved) += now_ns - since;
  const std::uint64_t busy = busy_ns();
  const measured_times m = measured();
  const auto part_of_busy = [busy](std::uint64_t part_ns, std::uint64_t of_ns) {
    if (of_ns == 0) return std::uint64_t{0};
    return static_cast<std::uint64_t>(static_cast<double>(busy) * static_cast<double>(part_ns) /
                                      static_cast<double>(of_ns));
  };
  s.busy_ns += busy;
  s.starved_ns += starved;
  s.blocked_ns += blocked;
  s.cpu_ns += part_of_busy(m.cpu_ns, m.cpu_of_ns);
  s.run_delay_ns += part_of_busy(m.delay_ns, m.delay_of_ns);
  s.items += items_.load(std::memory_order_relaxed);
  s.service_ns += service_ns_.snapshot();
}

MILLRACE_INLINE double worker_times::measured_times::share_on_cores() const noexcept {
  if (cpu_of_ns < enough_ns || delay_of_ns < enough_ns) return 0;
  const double share = static_cast<double>(cpu_ns) / static_cast<double>(cpu_of_ns) +
                       static_cast<double>(delay_ns) / static_cast<double>(delay_of_ns);
  return std::clamp(share, 0.001, 1.0);
}

MILLRACE_INLINE worker_times::measured_times& worker_times::measured_times::operator+=(
    const measured_times& more) noexcept {
  cpu_ns += more.cpu_ns;
  cpu_of_ns += more.cpu_of_ns;
  delay_ns += more.delay_ns;
  delay_of_ns += more.delay_of_ns;
  return *this;
}

MILLRACE_INLINE void worker_times::waited(std::uint64_t ns) noexcept {
  if (const waits_for what = waiting_for_; what != waits_for::nothing)
    add(what == waits_for::space ? blocked_ns_ : starved_ns_, ns);
}

}}}  // namespace millrace::detail
