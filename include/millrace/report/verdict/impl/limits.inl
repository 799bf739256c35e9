// Definitions for limits.hpp.
#pragma once

#include <millrace/report/verdict/limits.hpp>

#include <algorithm>
#include <limits>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE double flow_limits::margin() const noexcept {
  return all.size() > 1 ? all[1].samples_per_s / all[0].samples_per_s : std::numeric_limits<double>::infinity();
}

MILLRACE_INLINE const stage_limit* flow_limits::find(stage_kind kind) const noexcept {
  for (const auto& l : all)
    if (l.kind == kind) return &l;
  return nullptr;
}

MILLRACE_INLINE bool flow_limits::reads_in_turn() const noexcept {
  return std::any_of(all.begin(), all.end(), [](const auto& l) { return l.in_turn; });
}

namespace detail {

MILLRACE_INLINE double flow_change::work_time_of(std::size_t index) const noexcept {
  return stage == index || stage == ~std::size_t{0} ? work_time : 1;
}

MILLRACE_INLINE stage_limit reading_limit(const flow_statistics& f, std::size_t index, const flow_change& c) {
  const stage_statistics& read = f.stages[index];
  const double samples = read.samples(), threads = static_cast<double>(read.concurrency) * c.io_threads;
  const double reading_s = 1e-9 * static_cast<double>(read.busy_ns) / c.storage_speed;
  double all_ns = static_cast<double>(read.busy_ns);   // without the change
  stage_limit out{index, read.name, stage_kind::read, 0, false};
  double unpacking_s = 0;
  for (std::size_t i = 0; i < f.stages.size(); ++i) {
    if (f.stages[i].kind != stage_kind::unpack) continue;
    unpacking_s += 1e-9 * static_cast<double>(f.stages[i].busy_ns) * c.work_time_of(i);
    all_ns += static_cast<double>(f.stages[i].busy_ns);
    if (unpacking_s > reading_s) out = {i, f.stages[i].name, stage_kind::unpack, 0, false};
  }
  if (reading_s + unpacking_s <= 0) return out;
  out.samples_per_s = samples * threads / (reading_s + unpacking_s);
  stage_limit in_turn = out;
  in_turn.in_turn = true;

  const double storage_busy_s = 1e-9 * static_cast<double>(f.reads_at_once.busy_ns()) / c.storage_speed;
  if (storage_busy_s > 0) {
    // If the contention is unknown, all reads ran at one number of threads. More threads raise the speed at most in
    // proportion.
    const std::optional<double> contention = f.reads_at_once.contention();
    double faster = contention ? read_levels::speed(threads, *contention) / f.reads_at_once.mean_speed(*contention)
                               : std::max(1.0, c.io_threads);
    if (f.storage_ceiling_bytes_per_s > 0 && read.bytes > 0) {
      const double speed = static_cast<double>(read.bytes) / storage_busy_s;
      faster = std::min(faster, std::max(1.0, f.storage_ceiling_bytes_per_s * c.storage_speed / speed));
    }
    const double storage = samples / storage_busy_s * faster;
    if (storage < out.samples_per_s) out = {index, read.name, stage_kind::read, storage, false};
  }

  const std::optional<double> useful = f.useful_share_of_other_readers();
  if (!useful) return out;
  const double in_turn_s = static_cast<double>(f.in_turn_ns) * (reading_s + unpacking_s) / all_ns;
  const double one = static_cast<double>(f.in_turn_samples) / read.items_per_sample / in_turn_s;
  in_turn.samples_per_s = one * (1 + *useful * (threads - 1));
  // Prefers `in_turn` if both limits are about equal, because this limit states the reason.
  if (in_turn.samples_per_s >= 1.1 * out.samples_per_s) return out;
  in_turn.samples_per_s = std::min(in_turn.samples_per_s, out.samples_per_s);
  return in_turn;
}

MILLRACE_INLINE flow_limits limits_of(const flow_statistics& f, const flow_change& c) {
  flow_limits limits;
  for (std::size_t i = 0; i < f.stages.size(); ++i) {
    const stage_statistics& s = f.stages[i];
    stage_limit l{i, s.name, s.kind, 0, false};
    double busy_s = 1e-9 * static_cast<double>(s.busy_ns);
    auto concurrency = static_cast<double>(s.concurrency);
    switch (s.kind) {
      case stage_kind::read: l = reading_limit(f, i, c); break;
      case stage_kind::unpack: continue;   // part of the limit of read
      case stage_kind::work:
        if (s.concurrency > 1 || f.find(stage_kind::work) == &s) concurrency *= c.workers;
        busy_s *= c.work_time_of(i);
        break;
      case stage_kind::copy: busy_s *= c.copy_time; break;
      case stage_kind::step:
        if (f.device_gap_ns) busy_s = f.wall_s() - 1e-9 * static_cast<double>(*f.device_gap_ns);
        busy_s *= c.step_time;
        break;
    }
    if (s.kind != stage_kind::read && busy_s > 0) l.samples_per_s = s.samples() * concurrency / busy_s;
    if (l.samples_per_s > 0) limits.all.push_back(l);
  }
  std::stable_sort(limits.all.begin(), limits.all.end(),
                   [](const auto& a, const auto& b) { return a.samples_per_s < b.samples_per_s; });
  return limits;
}

}
}}   // namespace millrace::detail
