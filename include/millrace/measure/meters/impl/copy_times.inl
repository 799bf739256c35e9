// Defines what copy_times.hpp declares.
#pragma once

#include <millrace/measure/meters/copy_times.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE void copy_times::copied(const span_ring::span& s, std::size_t bytes) noexcept {
  const std::uint64_t from = std::max(s.start_ns, last_ns_);
  const std::uint64_t spent = s.end_ns - std::min(from, s.end_ns);
  last_ns_ = s.end_ns;
  busy_ns_.fetch_add(spent, std::memory_order_relaxed);
  batches_.fetch_add(1, std::memory_order_relaxed);
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  service_ns_.record(spent);
  spans_.record({from, s.end_ns, s.number});
  arrival& a = arrivals_[s.number % arrivals_.size()];
  a.at_ns.store(s.end_ns, std::memory_order_relaxed);
  a.batch.store(s.number, std::memory_order_release);
}

MILLRACE_INLINE std::uint64_t copy_times::arrived_ns(std::uint64_t batch) const noexcept {
  const arrival& a = arrivals_[batch % arrivals_.size()];
  return a.batch.load(std::memory_order_acquire) == batch ? a.at_ns.load(std::memory_order_relaxed) : 0;
}

MILLRACE_INLINE void copy_times::add_to(flow_figures& f, std::uint64_t now_ns) const {
  const std::uint64_t batches = batches_.load(std::memory_order_relaxed);
  stage_figures s{.name = "copy", .kind = stage_kind::copy, .busy_ns = busy_ns_.load(std::memory_order_relaxed)};
  s.items = batches * f.batch_samples;
  s.bytes = bytes_.load(std::memory_order_relaxed);
  s.service_ns = service_ns_.snapshot();
  // Copies may be under way while the stager waits. So only the time without a copy is divided, in the proportion of
  // the waits.
  const std::uint64_t all = now_ns - std::min(started_ns_, now_ns);
  const auto rest = static_cast<double>(all - std::min(s.busy_ns, all));
  const auto space = static_cast<double>(for_space_ns_.load()), input = static_cast<double>(for_input_ns_.load());
  s.blocked_ns = static_cast<std::uint64_t>(space > 0 ? rest * space / (space + input) : 0);
  s.starved_ns = static_cast<std::uint64_t>(rest) - std::min(s.blocked_ns, static_cast<std::uint64_t>(rest));
  f.stages.push_back(std::move(s));
}

}}}  // namespace millrace::detail
