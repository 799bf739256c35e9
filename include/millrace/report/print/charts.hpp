// The charts of the HTML report. Each function returns an inline SVG, or an empty text if the report lacks the data.
//
//   page += mr::detail::step_chart(r);      // time of each step, with the wait for data on top
//   page += mr::detail::stage_chart(r);     // busy, starved and blocked share of each stage
//   page += mr::detail::queue_chart(r);     // fill level of the batch ring and of the read-ahead
//   page += mr::detail::scaling_chart(r);   // samples per second over workers: predicted and measured
//   page += mr::detail::gantt_chart(r);     // three batches through all threads
//
// Up to 16 batches are drawn as columns, with their values if there is space. More batches are drawn as a line, whose
// points are means of adjacent batches.
// Errors: none. Threads: the functions are pure; any thread may call them.
#pragma once

#include <millrace/report/run_report.hpp>

#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Groups `count` deliveries into at most 200 points. Calls use(begin, end) for the half-open range of each point.
template <class Use>
void for_each_point(std::size_t count, const Use& use) {
  const std::size_t points = std::min<std::size_t>(count, 200);
  for (std::size_t i = 0; i < points; ++i) use(i * count / points, (i + 1) * count / points);
}

inline constexpr std::size_t max_columns = 16, max_values = 6;

std::string step_columns(std::span<const delivered_batch> all);

std::string step_chart(const run_report& r);

std::string stage_chart(const run_report& r);

std::string queue_columns(const run_report& r);

std::string queue_chart(const run_report& r);

std::string scaling_chart(const run_report& r);

/// Returns up to three batches with complete spans. The timeline contains spans for the last batches only, and some
/// spans of a batch may be missing. A batch counts as complete if no other batch has spans with more different names.
std::vector<std::uint64_t> batches_to_show(const timeline& t);

std::string gantt_chart(const run_report& r);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/report/print/impl/charts.inl>
#endif
