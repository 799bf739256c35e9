// All that a report shows: the figures and the conclusions from them.
//
//   mr::run_report r = mr::report_of(window, std::move(events));
//   r.facts.push_back({"commit", "20fbe65"});
//   std::fputs(mr::text_report(r).c_str(), stdout);        // report/text_report.hpp; json_report, html_report
//
// Errors: none. Threads: a value. report_of() takes some milliseconds: it replays the run with other numbers of
// workers.
#pragma once

#include <millrace/measure/timeline.hpp>
#include <millrace/report/picture_figures.hpp>
#include <millrace/report/run_origin.hpp>
#include <millrace/report/what_if.hpp>

#include <map>

namespace millrace { inline namespace MILLRACE_ABI {

/// The content of a report: figures, verdict, predictions and facts.
struct run_report {
  /// The speed with one number of workers.
  struct point {
    std::size_t workers = 0;
    double samples_per_s = 0;
    bool measured = false;
  };
  /// The speed that an earlier run predicted for a change, and the speed that this run measured.
  struct kept_prediction {
    std::string change{};
    double predicted_samples_per_s = 0, measured_samples_per_s = 0;
  };

  detail::flow_figures figures{};
  verdict conclusion{};
  std::vector<knob_gain> gains{};   ///< the largest first; of equal gains, upper bounds last
  std::vector<point> scaling{};   ///< by number of workers; measured for the run's own, else predicted
  std::vector<kept_prediction> kept{};
  detail::timeline events{};
  detail::picture_figures pictures{};       ///< since the start of the run, like `counts`
  std::vector<detail::event_count> counts{};    ///< events that are no errors: skipped, accepted
  std::vector<std::pair<std::string, std::string>> facts{};   ///< machine, versions, digest
  std::string title = "millrace run";
  detail::run_origin origin{};              ///< empty unless set; report_of(session) sets run_origin::now()
};

/// Returns the report of a window of a run: judges it, predicts gains and replays it. Takes some milliseconds.
inline run_report report_of(detail::flow_figures figures, detail::timeline events = {}) {
  run_report r;
  r.conclusion = judge(figures);
  const bool in_turns = r.conclusion.what != bound_by::unknown && r.conclusion.saturation < 0.95;
  r.gains = in_turns ? simulated_gains(figures) : gains_of(figures);
  std::stable_sort(r.gains.begin(), r.gains.end(), [](const auto& a, const auto& b) {
    return a.gain != b.gain ? a.gain > b.gain : a.at_most < b.at_most;   // equal gains: bounds last
  });
  const detail::stage_figures* const work = figures.find(detail::stage_kind::work);
  if (work && r.conclusion.what != bound_by::unknown) {
    // More workers than cores are not modeled.
    const std::size_t most = figures.usable_cores == 0 ? 2 * work->concurrency
                                 : std::max({figures.usable_cores, work->concurrency, std::size_t{2}});
    const std::size_t step = (most + 7) / 8;
    const double now = figures.samples_per_s();
    std::map<std::size_t, double> by_workers;
    for (std::size_t w = 1; w <= most; w = w < step ? step : w + step)
      by_workers[w] = std::min(what_if(figures, {.workers = w}).samples_per_s,
                               w > work->concurrency ? now * detail::processor_gain(figures, *work, w)
                                               : std::numeric_limits<double>::infinity());
    by_workers[work->concurrency] = now;   // measured, not predicted
    for (const auto& [workers, rate] : by_workers) r.scaling.push_back({workers, rate, workers == work->concurrency});
  }
  r.figures = std::move(figures);
  r.events = std::move(events);
  return r;
}

namespace detail {

/// Adds event counts to a report, those of the whole run as in run.stats().counts.
inline void add_counts(run_report& r, const std::vector<event_count>& counts) {
  for (const event_count& c : counts)
    if (!r.pictures.add(c)) r.counts.push_back(c);
  const bool on_processors = r.conclusion.what == bound_by::cpu || r.conclusion.what == bound_by::cpu_starved;
  if (const double share = r.pictures.share(r.pictures.progressive); on_processors && share >= 0.05)
    r.conclusion.evidence.push_back(detail::percent(share) + " of the JPEGs are progressive, which takes several times "
                                    "as long: examples/repack makes them baseline");
}

}  // namespace detail

}}  // namespace millrace
