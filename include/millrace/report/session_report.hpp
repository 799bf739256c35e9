// The report of a session: its measurements without the warm-up, the times of its batches, and its origin.
//
//   mr::run_report r = mr::report_of(run);                  // at any time, about the delivered batches
//   std::fputs(mr::text_report(r).c_str(), stdout);
//
// Errors: none; with fewer than 5 batches, the report has no verdict.
// Threads: any thread, while the session exists. Cost: a few milliseconds, because report_of() simulates the run with
// other numbers of workers. If the workers limit the run, report_of() also measures the cost of receiving rows from
// feeders (machines that compute rows), in about 10 ms.
#pragma once

#include <millrace/report/run_report.hpp>
#include <millrace/run/session.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

/// Returns the report for all batches that the session has delivered so far. Costs a few milliseconds.
template <auto... Columns>
run_report report_of(const session<Columns...>& run) {
  flow_statistics f = run.statistics_after_warm_up();
  detail::measure_receiving_if_useful(f);
  run_report r = report_of(std::move(f), run.events());
  r.origin = run_origin::now();
  if (!r.origin.program.empty()) r.title = r.origin.program;
  const std::string& text = run.description();
  r.facts.push_back({"session", text.substr(text.find(' ') + 1)});
  const run_stats stats = run.stats();
  if (std::string rows = run.rows_text(); !rows.empty()) r.facts.push_back({"rows", std::move(rows)});
  if (stats.digest != 0) r.facts.push_back({"digest", std::to_string(stats.digest)});
  detail::add_counts(r, stats.counts);
  return r;
}

}}  // namespace millrace
