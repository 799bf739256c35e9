// A small chart as inline SVG: axes with round numbers; lines, areas and bars in data coordinates.
//
//   mr::detail::svg_plot p({.title = "Step time", .x_label = "batch", .y_label = "ms", .x_most = 200, .y_most = 31.7});
//   p.line(points, "work");                  // a class of the page's style sheet sets the color
//   page += p.take();
//
// The default width is 320 units, about the pixels that a phone has for it. The page does not show it much smaller, so
// text of 14 units is at least 12 pixels high. On a wide screen three charts stand side by side. Colors come from the
// page alone, so one chart serves light and dark.
// Errors: none; an axis without an extent ends at 1. Threads: a value.
#pragma once

#include <millrace/base/format.hpp>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns text escaped for elements and attributes of HTML and SVG.
inline std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '"') out += "&quot;";
    else out += c;
  }
  return out;
}

/// Returns 1, 2 or 5 times a power of ten: the distance of the marks, with at most five steps up to `most`.
inline double round_step(double most) {
  double step = 1;
  while (step * 5 < most) step *= 10;
  while (step * 0.5 > most) step /= 10;
  for (const double smaller : {0.1, 0.2, 0.5})
    if (step * smaller * 5 >= most) return step * smaller;
  return step;
}

using svg_points = std::vector<std::pair<double, double>>;

class svg_plot {
 public:
  struct options {
    std::string title{}, x_label{}, y_label{};
    double x_least = 0, x_most = 1, y_most = 1;
    double left = 46;          ///< space for the marks of the y axis
    double width = 320, height = 220;
    bool y_marks = true;
    bool whole_x = false;      ///< no marks between whole numbers
    double max_mark = 1e300;  ///< greatest mark of the y axis, if the axis ends above it
  };

  explicit svg_plot(options o) : o_(std::move(o)) {
    if (!(o_.x_most > o_.x_least)) o_.x_most = o_.x_least + 1;
    if (!(o_.y_most > 0)) o_.y_most = 1;
    out_ = "<svg viewBox=\"0 0 " + number(o_.width) + " " + number(o_.height) + "\" role=\"img\" aria-label=\"" +
           escaped(o_.title) + "\">\n";
    axes();
  }

  double x(double value) const noexcept {
    return o_.left + (value - o_.x_least) / (o_.x_most - o_.x_least) * (o_.width - right - o_.left);
  }
  double y(double value) const noexcept { return bottom() - value / o_.y_most * (bottom() - top_of_axis()); }
  double bottom() const noexcept { return o_.height - 38; }
  double top_of_axis() const noexcept { return o_.y_label.empty() ? top : top + 16; }

  void line(const svg_points& points, std::string_view style) {
    if (points.empty()) return;
    out_ += "<path class=\"line ";
    out_ += style;
    out_ += "\" d=\"" + path(points, 'M') + "\"/>\n";
  }
  /// Fills the area between two lines over the same x.
  void area(const svg_points& upper, svg_points lower, std::string_view style) {
    if (upper.empty()) return;
    std::reverse(lower.begin(), lower.end());
    out_ += "<path class=\"fill ";
    out_ += style;
    out_ += "\" d=\"" + path(upper, 'M') + path(lower, 'L') + "Z\"/>\n";
  }
  struct box {
    double x0 = 0, x1 = 0, y0 = 0, y1 = 0;   ///< x in data coordinates; y in units of the picture, from the top
  };
  void bar(const box& b, std::string_view style, const std::string& tip) {
    const double from = x(b.x0);
    out_ += "<rect class=\"fill ";
    out_ += style;
    out_ += "\" x=\"" + number(from) + "\" y=\"" + number(b.y0) + "\" width=\"" +
            number(std::max(x(b.x1) - from, 0.5)) + "\" height=\"" + number(b.y1 - b.y0) + "\"><title>" + escaped(tip) +
            "</title></rect>\n";
  }
  /// Reaches from `from` to `to` on the y axis. `share` is its width, in units of x; `at_x` + `aside` is its middle.
  struct part_of_column {
    double at_x = 0, from = 0, to = 0, share = 0.7, aside = 0;
  };
  void column(const part_of_column& c, std::string_view style, const std::string& tip) {
    if (c.to <= c.from) return;
    const double middle = c.at_x + c.aside;
    bar({middle - c.share / 2, middle + c.share / 2, y(std::min(c.to, o_.y_most)), y(c.from)}, style, tip);
  }
  /// Writes text above a column.
  void value(double at_x, double at_y, const std::string& words) { text(x(at_x), y(at_y) - 4, words, "middle"); }
  /// Writes text at a point in units of the picture; `anchor` is start, middle or end.
  void text(double at_x, double at_y, std::string_view words, const char* anchor = "start") {
    out_ += "<text x=\"" + number(at_x) + "\" y=\"" + number(at_y) + "\" text-anchor=\"" + anchor + "\">" +
            escaped(words) + "</text>\n";
  }

  std::string take() { return std::move(out_) + "</svg>\n"; }

  static constexpr double right = 12, top = 12;
  static constexpr double digit_width = 8;   ///< width of a digit in text of 14 units

 private:
  static std::string number(double value) { return fixed(value, 1); }
  static std::string mark(double value, double step) { return fixed(value, step < 0.1 ? 2 : step < 1 ? 1 : 0); }

  std::string path(const svg_points& points, char first) const {
    std::string d;
    for (const auto& [px, py] : points) {
      d += d.empty() ? first : 'L';
      d += number(x(px));
      d += ' ';
      d += number(y(std::min(py, o_.y_most)));
    }
    return d;
  }
  void rule(double x0, double y0, double x1, double y1) {
    out_ += "<path class=\"rule\" d=\"M" + number(x0) + " " + number(y0) + "L" + number(x1) + " " + number(y1) +
            "\"/>\n";
  }

  void axes() {
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

  options o_;
  std::string out_;
};

}}}  // namespace millrace::detail
