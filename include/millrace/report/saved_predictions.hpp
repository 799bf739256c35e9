// Stores the speeds that the report of a run predicts for other settings. If a later run uses such settings, the report
// of the later run shows the predicted and the measured speed.
//
//   mr::run_report r = mr::report_of(run);
//   mr::compare_with("runs/6/report", r);        // from write_reports(); fills r.predictions
//   mr::write_reports(r, "runs/7/report");       // also stores the predictions of this run
//
// The stored settings are the numbers of workers, I/O threads and host slots, and the size of a batch. Each prediction
// changes one of these settings of the earlier run. The prediction is compared only with a later run that has exactly
// this change.
// Format: a line with the format version, a line for the run, and a line for each prediction.
// Errors: io_error for a file that cannot be read, data_error for a file in another format. Threads: any thread.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/measure/values/flow_statistics.hpp>
#include <millrace/report/run_report.hpp>

#include <array>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

inline constexpr const char* predictions_head = "millrace predictions 1";

/// The numbers of workers, I/O threads and host slots, and the batch size.
using kept_settings = std::array<std::size_t, 4>;

kept_settings settings_of(const flow_statistics& f);

/// Returns the predictions of a run as the text of a .predictions file.
std::string predictions_text(const run_report& r);

}   // namespace detail

/// Compares this run with the predictions of an earlier run. Adds the predictions for the settings of this run to
/// r.predictions. `earlier` is the path that the earlier run passed to write_reports(). Throws io_error if the file of
/// predictions cannot be read, and data_error if the file is invalid.
void compare_with(const std::string& earlier, run_report& r);

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/report/impl/saved_predictions.inl>
#endif
