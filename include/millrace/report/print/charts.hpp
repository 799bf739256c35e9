// The charts of the HTML report. Each function returns an inline SVG, or an empty text if the report lacks the data.
//
//   page += mr::detail::step_chart(r);      // time of each step, with the wait for data on top
//   page += mr::detail::stage_chart(r);     // busy, starved and blocked share of each stage
//   page += mr::detail::queue_chart(r);     // fill level of the batch ring and of the read-ahead
//   page += mr::detail::scaling_chart(r);   // samples per second over workers: predicted and measured
//   page += mr::detail::gantt_chart(r);     // three batches through all threads
//
// step_chart() and queue_chart() draw up to 16 batches as columns, with their values if there is space. For more than
// 16 batches, they draw lines or areas, whose points are means of adjacent batches.
// Errors: none. Threads: the functions are pure; any thread may call them.
#pragma once

#include <millrace/base/format.hpp>
#include <millrace/report/run_report.hpp>

#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// A small chart as inline SVG: axes with round numbers; lines, areas and bars in data coordinates.
//
// The default width is 320 units, about the width of a phone in pixels. The style sheet of the page sets all colors.
// Errors: none. An axis without an extent gets an extent of 1. Threads: not synchronized.

/// Returns text escaped for elements and attributes of HTML and SVG; control characters become \xNN.
std::string escaped(std::string_view text);

/// Returns the distance between adjacent marks of an axis: 1, 2 or 5 times a power of ten. At most five such distances
/// fit into the range from 0 to `most`.
double chart_step(double most);

using svg_points = std::vector<std::pair<double, double>>;

class svg_plot {
 public:
  struct options {
    std::string title{}, x_label{}, y_label{};
    double x_least = 0, x_most = 1, y_most = 1;
    double left = 46;   ///< width of the space for the marks of the y axis
    double width = 320, height = 220;
    bool y_marks = true;
    bool whole_x = false;      ///< whether the x axis has marks at integers only
    double max_mark = 1e300;   ///< the y axis has no marks above this value
  };

  explicit svg_plot(options o);

  double x(double value) const noexcept;
  double y(double value) const noexcept { return bottom() - value / o_.y_most * (bottom() - top_of_axis()); }
  double bottom() const noexcept { return o_.height - 38; }
  double top_of_axis() const noexcept { return o_.y_label.empty() ? top : top + 16; }

  void line(const svg_points& points, std::string_view style);
  /// Fills the area between two lines that have the same x values.
  void area(const svg_points& upper, svg_points lower, std::string_view style);
  struct box {
    double x0 = 0, x1 = 0, y0 = 0, y1 = 0;   ///< x in data coordinates; y in units of the chart, from the top
  };
  /// Draws a bar, at least half a unit wide. The part beyond the end of the x axis is not drawn.
  void bar(const box& b, std::string_view style, const std::string& tip);
  /// A part of a column, from `from` to `to` on the y axis. The width is `share`, and the middle is at `at_x` +
  /// `aside`, both in units of the x axis.
  struct part_of_column {
    double at_x = 0, from = 0, to = 0, share = 0.7, aside = 0;
  };
  void column(const part_of_column& c, std::string_view style, const std::string& tip);
  /// Writes text above a column.
  void value(double at_x, double at_y, const std::string& words) { text(x(at_x), y(at_y) - 4, words, "middle"); }
  /// Writes text at a point in units of the chart; `anchor` is start, middle or end.
  void text(double at_x, double at_y, std::string_view words, const char* anchor = "start");

  std::string take() { return std::move(out_) + "</svg>\n"; }

  static constexpr double right = 12, top = 12;
  static constexpr double digit_width = 8;   ///< width of a digit, if the font size is 14 units

 private:
  static std::string number(double value) { return fixed(value, 1); }
  static std::string mark(double value, double step) { return fixed(value, step < 0.1 ? 2 : step < 1 ? 1 : 0); }

  std::string path(const svg_points& points, char first) const;
  void rule(double x0, double y0, double x1, double y1);
  void axes();

  options o_;
  std::string out_;
};

/// Groups `count` deliveries into at most 200 points. Calls use(begin, end) for the half-open range of each point.
template <class Use>
void for_each_point(std::size_t count, const Use& use) {
  const std::size_t points = std::min<std::size_t>(count, 200);
  for (std::size_t i = 0; i < points; ++i) use(i * count / points, (i + 1) * count / points);
}

inline constexpr std::size_t max_columns = 16, max_values = 6;

std::string chart_step_columns(std::span<const delivered_batch> all);

std::string step_chart(const run_report& r);

std::string stage_chart(const run_report& r);

std::string queue_columns(const run_report& r);

std::string queue_chart(const run_report& r);

std::string scaling_chart(const run_report& r);

/// Returns the numbers of up to three batches whose spans are complete. The timeline contains spans for the last
/// batches only, and some spans of a batch may be missing. A batch counts as complete if no other batch has spans with
/// more different names.
std::vector<std::uint64_t> batches_to_show(const timeline& t);

std::string gantt_chart(const run_report& r);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/report/print/impl/charts.inl>
#endif
