// The report for a terminal, on one screen. The text begins with the verdict.
//
//   std::fputs(mr::text_report(mr::report_of(window)).c_str(), stdout);
//
//   VERDICT  CPU-bound in decode: the workers are the limit; your step could be 1.6 times as fast
//   ...
//
// The text is plain ASCII without colors. Lines have at most 110 columns unless a name is longer.
// Errors: none. Threads: the function is pure; any thread may call it.
#pragma once

#include <millrace/base/format.hpp>
#include <millrace/measure/values/flow_statistics.hpp>
#include <millrace/report/run_report.hpp>

#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

std::string report_cell(std::string text, std::size_t width, bool right = false);

/// Returns text such as "p50 25.1 ms  p95 26.0 ms  p99 31.7 ms".
std::string quantiles_text(const distribution& d);

/// Returns text such as "2.74 s, 184 batches of 24; 16 before them excluded".
std::string measured_text(const flow_statistics& f);

/// Returns text such as "16 usable cores, not throttled; threads that could run waited 12.4 ms for a core".
std::string machine_text(const flow_statistics& f);

/// Returns text such as "train_images, 2026-11-23 08:36:04 UTC".
std::string title_of(const run_report& r);

/// Returns pairs of a name and a text: the run, its command and its machine, then r.facts.
inline auto printed_facts(const run_report& r) {
  std::vector<std::pair<std::string, std::string>> facts{{"run", title_of(r)}};
  if (!r.origin.command.empty()) facts.emplace_back("command", r.origin.command);
  std::string machine = r.origin.machine;
  if (r.statistics.usable_cores > 0) machine += (machine.empty() ? "" : "; ") + machine_text(r.statistics);
  if (!machine.empty()) facts.emplace_back("machine", std::move(machine));
  facts.insert(facts.end(), r.facts.begin(), r.facts.end());
  return facts;
}

/// Returns `line` followed by `words`, broken at 110 columns. Further lines start at column `indent`. Breaks a line
/// only at a blank after one of `marks`, or at any blank if `marks` is empty.
std::string wrapped(std::string line, std::string_view words, std::size_t indent, std::string_view marks = "");

inline std::string counted_text(std::uint64_t times) { return grouped(static_cast<double>(times)); }

/// Returns text such as
/// "6 400 JPEGs: built-in decoder, several at once 6 144 (96.0 %), alone 192 (3.0 %); libjpeg 64 (1.0 %): ...".
std::string picture_lines_text(const picture_statistics& p);

std::string counts_text(const std::vector<event_count>& counts);

/// Returns the text after the columns of a stage: bytes per second, reads, phases, and CPU time per busy time.
std::string stage_remark(const flow_statistics& f, const stage_statistics& s);

}   // namespace detail

/// Returns the report as text for a terminal.
std::string text_report(const run_report& r);

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/report/print/impl/text_report.inl>
#endif
