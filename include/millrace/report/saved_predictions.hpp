// Stores the predictions of a run. The report of a later run with such a change then has both numbers.
//
//   mr::run_report r = mr::report_of(run);
//   mr::compare_with("runs/6/report", r);        // from write_reports(); fills r.kept
//   mr::write_reports(r, "runs/7/report");       // with the predictions of this run
//
// Predictions are stored for the settings that are part of the measurements: workers, I/O threads, host slots, batch. A
// prediction is compared if the later run has exactly its settings: no prediction covers two changes at once.
// Format: one line of words and numbers for the run and for each prediction.
// Errors: io_error for a file that cannot be read, data_error for a file of another kind. Threads: any.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/measure/values/flow_statistics.hpp>
#include <millrace/report/run_report.hpp>

#include <array>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

inline constexpr const char* predictions_head = "millrace predictions 1";

/// Workers, I/O threads, host slots, batch.
using kept_settings = std::array<std::size_t, 4>;

kept_settings settings_of(const flow_statistics& f);

/// Returns the predictions of a run as the text of a .predictions file.
std::string predictions_text(const run_report& r);

}  // namespace detail

/// Compares this run with the predictions of an earlier run and adds those that apply to r.kept.
/// `earlier` is the path that was passed to write_reports() in that run. Throws io_error or data_error for its file.
void compare_with(const std::string& earlier, run_report& r);

}}  // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/report/impl/saved_predictions.inl>
#endif
