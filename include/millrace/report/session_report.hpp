// The report of a session: its measurements without the warm-up, the times of its batches, and its origin (program,
// command line, machine and date).
//
//   mr::run_report r = mr::report_of(run);                  // at any time, about the delivered batches
//   std::fputs(mr::text_report(r).c_str(), stdout);
//
// Errors: none; with fewer than 5 batches, the report has no verdict.
// Threads: any thread, while the session exists. Cost: a few milliseconds, because report_of() simulates the run with
// other numbers of workers. If the workers limit the run, report_of() needs about 10 ms more, because it measures the
// cost of receiving rows from feeders. Feeders are machines that compute rows.
#pragma once

#include <millrace/report/run_report.hpp>
#include <millrace/run/session.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

run_report report_of_run(const run_core& run);

}   // namespace detail

/// Returns the report for the batches that the session has delivered so far, without the warm-up.
template <auto... Columns>
run_report report_of(const session<Columns...>& run) {
  return detail::report_of_run(detail::session_access::engine(run).core());
}

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/report/impl/session_report.inl>
#endif
