// Definitions for svg_plot.hpp.
#pragma once

#include <millrace/report/print/svg_plot.hpp>

#include <millrace/base/error.hpp>

#include <algorithm>
#include <cmath>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : printable_text(text)) {
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '"') out += "&quot;";
    else out += c;
  }
  return out;
}

MILLRACE_INLINE double round_step(double most) {
  double step = 1;
  while (step * 5 < most) step *= 10;
  while (step * 0.5 > most) step /= 10;
  for (const double smaller : {0.1, 0.2, 0.5})
    if (step * smaller * 5 >= most) return step * smaller;
  return step;
}

MILLRACE_INLINE svg_plot::svg_plot(options o) : o_(std::move(o)) {
  if (!(o_.x_most > o_.x_least)) o_.x_most = o_.x_least + 1;
  if (!(o_.y_most > 0)) o_.y_most = 1;
  out_ = "<svg viewBox=\"0 0 " + number(o_.width) + " " + number(o_.height) + "\" role=\"img\" aria-label=\"" +
         escaped(o_.title) + "\">\n";
  axes();
}

MILLRACE_INLINE double svg_plot::x(double value) const noexcept {
  return o_.left + (value - o_.x_least) / (o_.x_most - o_.x_least) * (o_.width - right - o_.left);
}

MILLRACE_INLINE void svg_plot::line(const svg_points& points, std::string_view style) {
  if (points.empty()) return;
  out_ += "<path class=\"line ";
  out_ += style;
  out_ += "\" d=\"" + path(points, 'M') + "\"/>\n";
}

MILLRACE_INLINE void svg_plot::area(const svg_points& upper, svg_points lower, std::string_view style) {
  if (upper.empty()) return;
  std::reverse(lower.begin(), lower.end());
  out_ += "<path class=\"fill ";
  out_ += style;
  out_ += "\" d=\"" + path(upper, 'M') + path(lower, 'L') + "Z\"/>\n";
}

MILLRACE_INLINE void svg_plot::bar(const box& b, std::string_view style, const std::string& tip) {
  const double from = x(std::min(b.x0, o_.x_most)), to = x(std::min(b.x1, o_.x_most));
  out_ += "<rect class=\"fill ";
  out_ += style;
  out_ += "\" x=\"" + number(from) + "\" y=\"" + number(b.y0) + "\" width=\"" + number(std::max(to - from, 0.5)) +
          "\" height=\"" + number(b.y1 - b.y0) + "\"><title>" + escaped(tip) + "</title></rect>\n";
}

MILLRACE_INLINE void svg_plot::column(const part_of_column& c, std::string_view style, const std::string& tip) {
  if (c.to <= c.from) return;
  const double middle = c.at_x + c.aside;
  bar({middle - c.share / 2, middle + c.share / 2, y(std::min(c.to, o_.y_most)), y(c.from)}, style, tip);
}

MILLRACE_INLINE void svg_plot::text(double at_x, double at_y, std::string_view words, const char* anchor) {
  out_ += "<text x=\"" + number(at_x) + "\" y=\"" + number(at_y) + "\" text-anchor=\"" + anchor + "\">" +
          escaped(words) + "</text>\n";
}

MILLRACE_INLINE std::string svg_plot::path(const svg_points& points, char first) const {
  std::string d;
  for (const auto& [px, py] : points) {
    d += d.empty() ? first : 'L';
    d += number(x(px));
    d += ' ';
    d += number(y(std::min(py, o_.y_most)));
  }
  return d;
}

MILLRACE_INLINE void svg_plot::rule(double x0, double y0, double x1, double y1) {
  out_ += "<path class=\"rule\" d=\"M" + number(x0) + " " + number(y0) + "L" + number(x1) + " " + number(y1) + "\"/>\n";
}

MILLRACE_INLINE void svg_plot::axes() {
  if (o_.y_marks) {
    const double most = std::min(o_.y_most, o_.max_mark), step = round_step(most);
    for (double v = 0; v <= most * 1.0001; v += step) {
      rule(o_.left, y(v), o_.width - right, y(v));
      text(o_.left - 5, y(v) + 5, mark(v, step), "end");
    }
  }
  const double extent = o_.x_most - o_.x_least;
  double step = std::max(round_step(extent), o_.whole_x ? 1.0 : 0.0);
  const double widest = digit_width * static_cast<double>(mark(o_.x_most, step).size() + 1);
  while (step / extent * (o_.width - right - o_.left) < widest) step *= 2;
  for (double v = step * std::ceil(o_.x_least / step) + 0.0; v <= o_.x_most + 1e-4 * extent; v += step) {
    const std::string at = mark(v, step);
    const double half = 0.5 * digit_width * static_cast<double>(at.size());
    text(std::min(x(v), o_.width - 2 - half), bottom() + 15, at, "middle");
  }
  rule(o_.left, bottom(), o_.width - right, bottom());
  text(o_.width - right, o_.height - 4, o_.x_label, "end");
  if (!o_.y_label.empty()) text(2, top + 2, o_.y_label);
}

}}}   // namespace millrace::detail
