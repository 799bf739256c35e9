// Definitions for session_report.hpp.
#pragma once

#include <millrace/report/session_report.hpp>

#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE run_report report_of_run(const run_core& run) {
  flow_statistics f = run.statistics_after_warm_up();
  measure_receiving_if_useful(f);
  run_report r = report_of(std::move(f), run.events());
  r.origin = run_origin::now();
  if (!r.origin.program.empty()) r.title = r.origin.program;
  const std::string& text = run.description();
  r.facts.push_back({"session", text.substr(text.find(' ') + 1)});
  const run_stats stats = run.stats();
  if (std::string rows = run.rows_text(); !rows.empty()) r.facts.push_back({"rows", std::move(rows)});
  if (stats.digest != 0) r.facts.push_back({"digest", std::to_string(stats.digest)});
  add_run_counts(r, stats.counts);
  return r;
}

}}}   // namespace millrace::detail
