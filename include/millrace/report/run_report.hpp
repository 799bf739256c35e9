// The content of a report: the measurements and the conclusions from them.
//
//   mr::run_report r = mr::report_of(window, std::move(events));
//   r.facts.push_back({"commit", "20fbe65"});
//   std::fputs(mr::text_report(r).c_str(), stdout);        // report/print/text_report.hpp; json_report, html_report
//
// Errors: none. Threads: not synchronized. Cost: report_of() runs for a few milliseconds, because it simulates the run
// with other numbers of workers.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/measure/values/timeline.hpp>
#include <millrace/report/verdict/knobs.hpp>
#include <millrace/report/verdict/picture_statistics.hpp>
#include <millrace/report/verdict/run_origin.hpp>
#include <millrace/report/verdict/verdict.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

/// The content of a report: measurements, verdict, predictions and facts.
struct run_report {
  /// The speed with a given number of workers.
  struct point {
    std::size_t workers = 0;
    double samples_per_s = 0;
    bool measured = false;
  };
  /// The speed that an earlier run predicted for a change, and the speed that this run measured.
  struct checked_prediction {
    std::string change{};
    double predicted_samples_per_s = 0, measured_samples_per_s = 0;
  };

  flow_statistics statistics{};
  verdict conclusion{};
  std::vector<knob_gain> gains{};   ///< in descending order; among equal gains, upper bounds are last
  std::vector<point> scaling{};     ///< by number of workers; the run's own number has the measured speed
  std::vector<checked_prediction> predictions{};
  timeline events{};
  picture_statistics pictures{};                              ///< since the start of the run, like `counts`
  std::vector<event_count> counts{};                          ///< events that are not errors, such as skipped members
  std::vector<std::pair<std::string, std::string>> facts{};   ///< machine, versions, digest
  std::string title = "millrace run";
  run_origin origin{};   ///< empty unless set; report_of(session) sets run_origin::now()
};

/// Returns the report for a window of a run. Judges the window, predicts gains and simulates the run in a few
/// milliseconds.
run_report report_of(flow_statistics statistics, timeline events = {});

namespace detail {

/// Measures the cost of receiving rows from feeders (machines that compute rows), if the workers limit the run.
void measure_receiving_if_useful(flow_statistics& f);

/// Adds the event counts of the complete run, such as run.stats().counts, to a report.
void add_counts(run_report& r, const std::vector<event_count>& counts);

}   // namespace detail

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/report/impl/run_report.inl>
#endif
