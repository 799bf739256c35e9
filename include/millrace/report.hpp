// Umbrella header for reports that show the bottleneck of a run as text, JSON, an HTML page and a trace. No other
// umbrella header includes this header.
//
//   #include <millrace/report.hpp>
//   std::fputs(mr::text_report(mr::report_of(run)).c_str(), stdout);
//   mr::write_reports(mr::report_of(run), "out/report");      // .txt .json .html, and .trace.json for Perfetto
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/report/print/json_report.hpp>
#include <millrace/report/print/html_report.hpp>
#include <millrace/report/print/text_report.hpp>
#include <millrace/report/print/write_reports.hpp>
#include <millrace/report/session_report.hpp>
