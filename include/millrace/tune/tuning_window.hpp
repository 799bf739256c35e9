// Condenses a window of a run into a few numbers that say how many workers and reads its step needs.
//
//   mr::detail::tuning_window w = mr::detail::tuning_window_of(now - before);
//   w.rate_of_workers(6);   w.rate_of_reads(8);      // delivered samples per second that so many could keep up with
//
// Utilization law (flow_figures.hpp): n threads that work d seconds per sample can do n / d samples per second.
// One of k outstanding reads takes alone x (1 + contention x (k - 1)) seconds (measure/read_levels.hpp).
// Errors: none; work that the window did not see sets no limit. Threads: a value.
#pragma once

#include <millrace/measure/flow_figures.hpp>
#include <millrace/work/segment.hpp>

#include <algorithm>
#include <limits>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Figures of one window. Times are in seconds, rates in delivered samples per second.
struct tuning_window {
  static constexpr double without_limit = std::numeric_limits<double>::infinity();

  double data_wait = 0;                 ///< share of the trainer's time, or of its device's time
  double rate = 0;                      ///< delivered samples per second
  double read_rate = 0;                 ///< samples read per second, in delivered samples
  double step_rate = without_limit;     ///< rate of a step that never waits for data
  double fixed_rate = without_limit;    ///< rate of the slowest stage that is not tuned
  std::string fixed_name{};             ///< name of that stage
  double work_s = 0, all_work_s = 0;    ///< worker time of a sample: in the slowest stage, and in all stages
  bool reads = false;                   ///< enough was read to judge; false if much had been read ahead
  double reading_s = 0, unpacking_s = 0;   ///< I/O thread time of a sample
  double outstanding = 1;               ///< mean number of outstanding reads while there were any
  std::optional<double> contention{};   ///< contention of reads, 0 to 1; none: unknown
  concurrency_counts open{};            ///< workers and reads that were open

  /// Returns the rate that `n` workers can keep up with; infinite if they had no work.
  double rate_of_workers(std::size_t n) const noexcept {
    return work_s > 0 ? static_cast<double>(n) / work_s : without_limit;
  }
  /// Returns the rate that `n` reads at a time can keep up with; infinite if too little was read to judge.
  double rate_of_reads(std::size_t n) const noexcept {
    const double q = contention.value_or(0), count = static_cast<double>(n);
    const double alone_s = reading_s / (1 + q * (outstanding - 1));
    const double one_s = alone_s * (1 + q * (count - 1)) + unpacking_s;
    return reads && one_s > 0 ? count / one_s : without_limit;
  }
};

/// Returns the figures of a window `f` (flow_figures). This is a template only to keep including it cheap.
template <class Figures>
tuning_window tuning_window_of(const Figures& f) {
  tuning_window w;
  w.data_wait = f.data_wait_share();
  w.rate = f.samples_per_s();
  for (const stage_figures& s : f.stages) {
    const double busy_s = 1e-9 * static_cast<double>(s.busy_ns), samples = s.samples();
    const double one_s = samples > 0 ? busy_s / samples : 0;
    const auto limit = [&](double rate) {
      if (rate >= w.fixed_rate) return;
      w.fixed_rate = rate;
      w.fixed_name = s.name;
    };
    switch (s.kind) {
      case stage_kind::read:
        w.reading_s = one_s;
        w.read_rate = f.wall_ns > 0 ? samples / f.wall_s() : 0;
        w.reads = 4 * samples >= static_cast<double>(f.samples);
        w.open.reads = s.concurrency;
        break;
      case stage_kind::unpack: w.unpacking_s = one_s; break;
      case stage_kind::work:
        if (s.on_workers) {
          w.work_s = std::max(w.work_s, one_s);
          w.all_work_s += one_s;
          w.open.workers = s.concurrency;
        } else if (one_s > 0) {
          limit(static_cast<double>(s.concurrency) / one_s);
        }
        break;
      case stage_kind::copy:
        if (one_s > 0) limit(1 / one_s);
        break;
      case stage_kind::step: {
        const double step_s = f.device_gap_ns ? f.wall_s() - 1e-9 * static_cast<double>(*f.device_gap_ns) : busy_s;
        if (step_s > 0 && samples > 0) w.step_rate = samples / step_s;
        break;
      }
    }
  }
  // levels.mean_outstanding() is too low: its last level counts everything above it. For the same reason these levels
  // say little about contention if many reads ended in the last one.
  const auto& top = f.reads_at_once.at(read_levels::most);
  const stage_figures* const read = f.find(stage_kind::read);
  if (read && f.reads_at_once.busy_ns() > 0)
    w.outstanding = std::max(
        1.0, static_cast<double>(read->busy_ns) / static_cast<double>(f.reads_at_once.busy_ns()));
  if (read && 2 * top.reads < read->service_ns.count()) w.contention = f.reads_at_once.contention();
  return w;
}

}}}  // namespace millrace::detail
