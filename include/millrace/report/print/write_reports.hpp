// Writes a report in all formats.
//
//   mr::write_reports(mr::report_of(run), "runs/7/report");
//   // runs/7/report.txt  report.json  report.html  report.trace.json (ui.perfetto.dev opens it)
//   // runs/7/report.predictions: for the comparison with a later run (saved_predictions.hpp)
//
// Each file gets its name only when it is complete and on the disk. Incomplete files that a killed process left for the
// same path are removed.
// Errors: io_error with the file and the reason; files written before the error stay. Threads: any thread.
#pragma once

#include <millrace/report/run_report.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

/// Writes all formats of the report. Each file name is the path plus an extension. Throws io_error.
void write_reports(const run_report& r, const std::string& path_without_ending);

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/report/print/impl/write_reports.inl>
#endif
