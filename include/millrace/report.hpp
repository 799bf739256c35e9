// Reports of runs: what limits them, as text, JSON, a page and a trace. An umbrella: includes only; in no other one.
//
//   #include <millrace/report.hpp>
//   std::fputs(mr::text_report(mr::report_of(run)).c_str(), stdout);
//   mr::write_reports(mr::report_of(run), "out/report");      // .txt .json .html, and .trace.json for Perfetto
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/report/chrome_trace.hpp>
#include <millrace/report/html_report.hpp>
#include <millrace/report/session_report.hpp>
#include <millrace/report/text_report.hpp>
#include <millrace/report/write_reports.hpp>
