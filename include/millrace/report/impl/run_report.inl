// Definitions for run_report.hpp.
#pragma once

#include <millrace/report/run_report.hpp>

#include <millrace/base/format.hpp>
#include <millrace/report/simulate/what_if.hpp>

#include <limits>
#include <map>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE run_report report_of(flow_statistics statistics, timeline events) {
  run_report r;
  r.conclusion = judge(statistics);
  const bool in_turns = r.conclusion.what != bound_by::unknown && r.conclusion.saturation < 0.95;
  r.gains = in_turns ? simulated_gains(statistics) : gains_of(statistics);
  std::stable_sort(r.gains.begin(), r.gains.end(), [](const auto& a, const auto& b) {
    return a.gain != b.gain ? a.gain > b.gain : a.at_most < b.at_most;   // equal gains: bounds last
  });
  const stage_statistics* const work = statistics.find(stage_kind::work);
  if (work && r.conclusion.what != bound_by::unknown) {
    // More workers than cores are not modeled.
    const std::size_t most = statistics.usable_cores == 0
                                 ? 2 * work->concurrency
                                 : std::max({statistics.usable_cores, work->concurrency, std::size_t{2}});
    const std::size_t step = (most + 7) / 8;
    const double now = statistics.samples_per_s();
    std::map<std::size_t, double> by_workers;
    for (std::size_t w = 1; w <= most; w = w < step ? step : w + step)
      by_workers[w] = std::min(what_if(statistics, {.workers = w}).samples_per_s,
                               w > work->concurrency ? now * detail::processor_gain(statistics, *work, w)
                                                     : std::numeric_limits<double>::infinity());
    by_workers[work->concurrency] = now;   // measured, not predicted
    for (const auto& [workers, rate] : by_workers) r.scaling.push_back({workers, rate, workers == work->concurrency});
  }
  r.statistics = std::move(statistics);
  r.events = std::move(events);
  return r;
}

namespace detail {

MILLRACE_INLINE void measure_receiving_if_useful(flow_statistics& f) {
  const bound_by what = judge(f).what;
  if (what == bound_by::cpu || what == bound_by::cpu_starved) f.receive_ns_per_byte = measure_receiving();
}

MILLRACE_INLINE void add_counts(run_report& r, const std::vector<event_count>& counts) {
  for (const event_count& c : counts)
    if (!r.pictures.add(c)) r.counts.push_back(c);
  const bool on_processors = r.conclusion.what == bound_by::cpu || r.conclusion.what == bound_by::cpu_starved;
  if (const double share = r.pictures.share(r.pictures.progressive); on_processors && share >= 0.05)
    r.conclusion.evidence.push_back(percent(share) + " of the JPEGs are progressive: they take over twice the "
                                                     "time; examples/repack converts them to baseline");
}

}   // namespace detail

}}   // namespace millrace
