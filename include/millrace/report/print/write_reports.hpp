// Writes a report in all formats.
//
//   mr::write_reports(mr::report_of(run), "runs/7/report");
//   // runs/7/report.txt  report.json  report.html  report.trace.json (ui.perfetto.dev opens it)
//   // runs/7/report.predictions: for the comparison with a later run (saved_predictions.hpp)
//
// Each file appears under its name when it is complete and on the disk. Files that a killed process left of the same
// reports are removed.
// Errors: io_error with the file and the reason; files that were written earlier stay. Threads: any.
#pragma once

#include <millrace/report/run_report.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

/// Writes all formats of the report; each file name is the path plus its extension. Throws io_error.
void write_reports(const run_report& r, const std::string& path_without_ending);

}}  // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/report/print/impl/write_reports.inl>
#endif
