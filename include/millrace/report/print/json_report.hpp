// The report in a format for programs: one JSON object with the content of the text report, in base units.
//
//   std::string json = mr::json_report(mr::report_of(window));
//   // {"title":"...",...,"verdict":{"sentence":"...","bound_by":"CPU-bound",...,"margin":1.63,...},
//   //  "figures":{...},"gains":[...],...}
//
// Units: times in nanoseconds (_ns), sizes in bytes (_bytes), rates per second (_per_s), shares 0..1. Unknown values
// are null.
// Errors: none. Threads: the function is pure; any thread may call it. Source: RFC 8259.
#pragma once

#include <millrace/base/json_writer.hpp>
#include <millrace/measure/values/distribution.hpp>
#include <millrace/report/run_report.hpp>

#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

void add_quantiles(json_writer& out, std::string_view name, const distribution& d);

void add_stage(json_writer& out, const run_report& r, std::size_t index);

void add_pictures(json_writer& out, const picture_statistics& p);

}   // namespace detail

/// Returns the report as one JSON object, followed by a line end.
std::string json_report(const run_report& r);

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/report/print/impl/json_report.inl>
#endif
