// Defines what worker_times.hpp declares.
#pragma once

#include <millrace/measure/worker_times.hpp>

#include <algorithm>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE void worker_times::add_to(stage_figures& s, std::uint64_t now_ns) const noexcept {
  std::uint64_t starved = starved_ns_.load(std::memory_order_acquire);
  std::uint64_t blocked = blocked_ns_.load(std::memory_order_acquire);
  const std::uint64_t since = idle_since_ns_.load(std::memory_order_acquire);
  if (const waits_for what = waiting_for_; since != 0 && since < now_ns && what != waits_for::nothing)
    (what == waits_for::space ? blocked : starved) += now_ns - since;
  const std::uint64_t busy = busy_ns();
  const auto measured = static_cast<double>(measured_ns_.load(std::memory_order_relaxed));
  const auto cpu = static_cast<double>(measured_cpu_ns_.load(std::memory_order_relaxed));
  s.busy_ns += busy;
  s.starved_ns += starved;
  s.blocked_ns += blocked;
  if (measured > 0) s.cpu_ns += static_cast<std::uint64_t>(static_cast<double>(busy) * cpu / measured);
  const auto delay_of = static_cast<double>(delay_of_ns_.load(std::memory_order_relaxed));
  const auto delay = static_cast<double>(measured_delay_ns_.load(std::memory_order_relaxed));
  if (delay_of > 0) s.run_delay_ns += static_cast<std::uint64_t>(static_cast<double>(busy) * delay / delay_of);
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
