// A small chart as inline SVG: axes with round numbers, lines, areas and bars in data coordinates.
//
//   detail::svg_plot p({.title = "Step time", .x_label = "batch", .y_label = "ms", .x_most = 200, .y_most = 31.7});
//   p.line(points, "work");                  // a class of the page's style sheet gives the colour
//   page += p.take();
//
// 440 units wide unless told: on a phone its text stays readable, on a wide screen three stand side by side. Colours
// come from the page alone, so that light and dark need no second chart. Errors: none; without an extent an axis ends
// at 1.
#pragma once

#include <millrace/report/format.hpp>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace::inline MILLRACE_ABI::detail {

/// Text as HTML and SVG take it, in elements and in attributes.
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

/// 1, 2 or 5 times a power of ten: the distance of at most five marks up to `most`.
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
    double left = 46;          ///< room for the marks of the y axis
    double width = 440, height = 220;
    bool y_marks = true;
    bool whole_x = false;      ///< no marks between whole numbers
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
  double y(double value) const noexcept { return bottom() - value / o_.y_most * (bottom() - top); }
  double bottom() const noexcept { return o_.height - 34; }

  void line(const svg_points& points, std::string_view style) {
    if (points.empty()) return;
    out_ += "<path class=\"line ";
    out_ += style;
    out_ += "\" d=\"" + path(points, 'M') + "\"/>\n";
  }
  /// Between two lines over the same x.
  void area(const svg_points& upper, svg_points lower, std::string_view style) {
    if (upper.empty()) return;
    std::reverse(lower.begin(), lower.end());
    out_ += "<path class=\"fill ";
    out_ += style;
    out_ += "\" d=\"" + path(upper, 'M') + path(lower, 'L') + "Z\"/>\n";
  }
  struct box {
    double x0 = 0, x1 = 0, y0 = 0, y1 = 0;   ///< y in units of the picture, from the top
  };
  void bar(const box& b, std::string_view style, const std::string& tip) {
    const double from = x(b.x0);
    out_ += "<rect class=\"fill ";
    out_ += style;
    out_ += "\" x=\"" + number(from) + "\" y=\"" + number(b.y0) + "\" width=\"" +
            number(std::max(x(b.x1) - from, 0.5)) + "\" height=\"" + number(b.y1 - b.y0) + "\"><title>" + escaped(tip) +
            "</title></rect>\n";
  }
  void dot(double at_x, double at_y, std::string_view style, const std::string& tip) {
    out_ += "<circle class=\"fill ";
    out_ += style;
    out_ += "\" cx=\"" + number(x(at_x)) + "\" cy=\"" + number(y(at_y)) + "\" r=\"3.5\"><title>" + escaped(tip) +
            "</title></circle>\n";
  }
  /// At a place of the picture; `anchor` is start, middle or end.
  void text(double at_x, double at_y, std::string_view words, const char* anchor = "start") {
    out_ += "<text x=\"" + number(at_x) + "\" y=\"" + number(at_y) + "\" text-anchor=\"" + anchor + "\">" +
            escaped(words) + "</text>\n";
  }

  std::string take() { return std::move(out_) + "</svg>\n"; }

  static constexpr double right = 12, top = 10;

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
      const double step = round_step(o_.y_most);
      for (double v = 0; v <= o_.y_most * 1.0001; v += step) {
        rule(o_.left, y(v), o_.width - right, y(v));
        text(o_.left - 5, y(v) + 4, mark(v, step), "end");
      }
    }
    const double step = std::max(round_step(o_.x_most - o_.x_least), o_.whole_x ? 1.0 : 0.0);
    for (double v = step * std::ceil(o_.x_least / step); v <= o_.x_most * 1.0001; v += step)
      text(x(v), bottom() + 14, mark(v, step), "middle");
    rule(o_.left, bottom(), o_.width - right, bottom());
    text(o_.width - right, o_.height - 4, o_.x_label, "end");
    if (!o_.y_label.empty()) text(2, o_.height - 4, o_.y_label);
  }

  options o_;
  std::string out_;
};

}  // namespace millrace::inline MILLRACE_ABI::detail
