// Definitions for charts.hpp.
#pragma once

#include <millrace/report/print/charts.hpp>

#include <millrace/base/error.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

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

MILLRACE_INLINE double chart_step(double most) {
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
    const double most = std::min(o_.y_most, o_.max_mark), step = chart_step(most);
    for (double v = 0; v <= most * 1.0001; v += step) {
      rule(o_.left, y(v), o_.width - right, y(v));
      text(o_.left - 5, y(v) + 5, mark(v, step), "end");
    }
  }
  const double extent = o_.x_most - o_.x_least;
  double step = std::max(chart_step(extent), o_.whole_x ? 1.0 : 0.0);
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

MILLRACE_INLINE std::string chart_step_columns(std::span<const delivered_batch> all) {
  double most = 0;
  const auto ms = [](std::uint64_t ns) { return 1e-6 * static_cast<double>(ns); };
  for (const auto& d : all) most = std::max(most, ms(d.step_ns + d.wait_ns));
  const auto first = static_cast<double>(all.front().number), last = static_cast<double>(all.back().number);
  svg_plot p({.title = "Step time and wait for data",
              .x_label = "batch",
              .y_label = "ms",
              .x_least = first - 0.5,
              .x_most = last + 0.5,
              .y_most = most * 1.15,
              .whole_x = true});
  for (const auto& d : all) {
    const auto at = static_cast<double>(d.number);
    const double step = ms(d.step_ns), whole_step = ms(d.step_ns + d.wait_ns);
    const std::string name = "batch " + std::to_string(d.number);
    p.column({.at_x = at, .to = step}, "step", name + ": step " + three_digits(step) + " ms");
    p.column({.at_x = at, .from = step, .to = whole_step}, "wait",
             name + ": waited " + three_digits(ms(d.wait_ns)) + " ms");
    if (all.size() <= max_values) p.value(at, whole_step, three_digits(whole_step));
  }
  return p.take();
}

MILLRACE_INLINE std::string step_chart(const run_report& r) {
  std::span<const delivered_batch> all = r.events.deliveries;
  if (!all.empty() && all.back().step_ns == 0) all = all.first(all.size() - 1);   // the last step has not ended
  if (all.empty()) return "";
  if (all.size() <= max_columns) return chart_step_columns(all);
  svg_points steps, whole_steps, zero;
  double most = 0;
  for_each_point(all.size(), [&](std::size_t first, std::size_t last) {
    double step = 0, wait = 0;
    for (std::size_t i = first; i < last; ++i) {
      step += 1e-6 * static_cast<double>(all[i].step_ns);
      wait += 1e-6 * static_cast<double>(all[i].wait_ns);
    }
    const auto n = static_cast<double>(last - first), at = static_cast<double>(all[first].number);
    steps.emplace_back(at, step / n);
    whole_steps.emplace_back(at, (step + wait) / n);
    zero.emplace_back(at, 0);
    most = std::max(most, (step + wait) / n);
  });
  svg_plot p({.title = "Step time and wait for data",
              .x_label = "batch",
              .y_label = "ms",
              .x_least = steps.front().first,
              .x_most = steps.back().first,
              .y_most = most * 1.05,
              .whole_x = true});
  p.area(steps, zero, "step");
  p.area(whole_steps, steps, "wait");
  return p.take();
}

MILLRACE_INLINE std::string stage_chart(const run_report& r) {
  const auto& stages = r.statistics.stages;
  if (stages.empty()) return "";
  constexpr double row = 37;
  svg_plot p({.title = "Stage utilization",
              .x_label = "% of its threads' time",
              .x_most = 100,
              .left = 12,
              .height = 50 + row * static_cast<double>(stages.size()),
              .y_marks = false});
  double y = svg_plot::top + 8;
  for (const auto& s : stages) {
    // Threads that have been closed, or that worked during a pause, may have counted more than 100 %. The bars end at
    // 100 %.
    const double busy = 100 * r.statistics.share(s, s.busy_ns), starved = 100 * r.statistics.share(s, s.starved_ns),
                 blocked = 100 * r.statistics.share(s, s.blocked_ns);
    const std::string name = s.concurrency > 1 ? s.name + " x" + std::to_string(s.concurrency) : s.name;
    p.text(12, y, name + ": " + fixed(busy, 1) + " % busy");
    p.bar({0, busy, y + 4, y + 18}, name_of(s.kind), name + " busy " + fixed(busy, 1) + " %");
    if (starved > 0)
      p.bar({busy, busy + starved, y + 4, y + 18}, "starved", name + " starved " + fixed(starved, 1) + " %");
    if (blocked > 0)
      p.bar({busy + starved, busy + starved + blocked, y + 4, y + 18}, "blocked",
            name + " blocked " + fixed(blocked, 1) + " %");
    y += row;
  }
  return p.take();
}

MILLRACE_INLINE std::string queue_columns(const run_report& r) {
  const auto& all = r.events.deliveries;
  const auto first = static_cast<double>(all.front().number), last = static_cast<double>(all.back().number);
  svg_plot p({.title = "Queue fill",
              .x_label = "batch",
              .y_label = "% full",
              .x_least = first - 0.5,
              .x_most = last + 0.5,
              .y_most = 115,
              .whole_x = true,
              .max_mark = 100});
  for (const auto& d : all) {
    const auto at = static_cast<double>(d.number);
    const std::string name = "batch " + std::to_string(d.number);
    const auto add = [&](double aside, double full, const char* style, const char* what) {
      p.column({.at_x = at, .to = full, .share = 0.35, .aside = aside}, style, name + what + percent(full / 100));
      if (all.size() <= max_values / 2) p.value(at + aside, full, fixed(full, 0));
    };
    const auto of = [](std::size_t part, std::size_t capacity) {
      return 100 * static_cast<double>(part) / static_cast<double>(capacity);
    };
    add(-0.19, of(d.ready_slots, r.statistics.host_slots + r.statistics.device_slots), "work", ": ready batches ");
    if (r.statistics.read_ahead_bytes > 0)
      add(0.19, of(d.read_ahead_bytes, r.statistics.read_ahead_bytes), "read", ": read ahead ");
  }
  return p.take();
}

MILLRACE_INLINE std::string queue_chart(const run_report& r) {
  const auto& all = r.events.deliveries;
  if (all.empty() || r.statistics.host_slots == 0) return "";
  if (all.size() <= max_columns) return queue_columns(r);
  svg_points slots, ahead;
  const double start = 1e-9 * static_cast<double>(all.front().at_ns);
  for_each_point(all.size(), [&](std::size_t first, std::size_t last) {
    double ready = 0, bytes = 0;
    for (std::size_t i = first; i < last; ++i) {
      ready += static_cast<double>(all[i].ready_slots);
      bytes += static_cast<double>(all[i].read_ahead_bytes);
    }
    const auto n = static_cast<double>(last - first);
    const double at = 1e-9 * static_cast<double>(all[first].at_ns) - start;
    slots.emplace_back(at, 100 * ready / n / static_cast<double>(r.statistics.host_slots + r.statistics.device_slots));
    if (r.statistics.read_ahead_bytes > 0)
      ahead.emplace_back(at, 100 * bytes / n / static_cast<double>(r.statistics.read_ahead_bytes));
  });
  svg_plot p(
      {.title = "Queue fill", .x_label = "seconds", .y_label = "% full", .x_most = slots.back().first, .y_most = 100});
  p.line(slots, "work");
  p.line(ahead, "read");
  return p.take();
}

MILLRACE_INLINE std::string scaling_chart(const run_report& r) {
  if (r.scaling.empty()) return "";
  double most = 0, gap = 1e9;
  for (std::size_t i = 0; i < r.scaling.size(); ++i) {
    most = std::max(most, r.scaling[i].samples_per_s);
    if (i > 0) gap = std::min(gap, static_cast<double>(r.scaling[i].workers - r.scaling[i - 1].workers));
  }
  if (r.scaling.size() < 2) gap = 1;
  svg_plot p({.title = "Samples per second over workers",
              .x_label = "workers",
              .y_label = "samples/s",
              .x_least = static_cast<double>(r.scaling.front().workers) - gap / 2,
              .x_most = static_cast<double>(r.scaling.back().workers) + gap / 2,
              .y_most = most * 1.15,
              .left = 60,
              .whole_x = true});
  for (const auto& s : r.scaling) {
    const auto at = static_cast<double>(s.workers);
    p.column({.at_x = at, .to = s.samples_per_s, .share = 0.7 * gap}, s.measured ? "step" : "work",
             std::to_string(s.workers) + " workers: " + grouped(s.samples_per_s) + " samples/s, " +
                 (s.measured ? "measured" : "predicted"));
    if (r.scaling.size() <= 4) p.value(at, s.samples_per_s, grouped(s.samples_per_s));
  }
  return p.take();
}

MILLRACE_INLINE std::vector<std::uint64_t> batches_to_show(const timeline& t) {
  std::map<std::uint64_t, std::set<std::string_view>> names_of_batch;
  std::size_t most = 0;
  for (const auto& s : t.spans) {
    if (s.batch == timeline_span::no_batch) continue;
    auto& names = names_of_batch[s.batch];
    names.insert(s.name);
    most = std::max(most, names.size());
  }
  std::vector<std::uint64_t> batches;
  for (const auto& [batch, names] : names_of_batch)
    if (names.size() == most) batches.push_back(batch);
  // The first batches may lack spans that ended before the window.
  const std::size_t skip = batches.size() > 8 ? 5 : 0;
  batches.erase(batches.begin(), batches.begin() + static_cast<std::ptrdiff_t>(skip));
  batches.resize(std::min<std::size_t>(batches.size(), 3));
  return batches;
}

MILLRACE_INLINE std::string gantt_chart(const run_report& r) {
  const timeline& t = r.events;
  const std::vector<std::uint64_t> batches = batches_to_show(t);
  if (batches.empty()) return "";
  const auto number_of = [&](const timeline_span& s) {
    return static_cast<std::size_t>(std::find(batches.begin(), batches.end(), s.batch) - batches.begin());
  };
  std::int64_t start = std::numeric_limits<std::int64_t>::max(), end = 0;
  for (const auto& s : t.spans) {
    if (number_of(s) == batches.size()) continue;
    start = std::min(start, s.start_ns);
    end = std::max(end, s.end_ns);
  }
  const double row = t.tracks.size() > 24 ? 9 : 18;
  svg_plot p({.title = "Batches through all threads",
              .x_label = "ms",
              .x_most = 1e-6 * static_cast<double>(end - start),
              .left = 80,
              .width = 640,
              .height = 54 + row * static_cast<double>(t.tracks.size()),
              .y_marks = false});
  for (std::size_t i = 0; i < t.tracks.size(); ++i)
    if (row > 10 || i % 2 == 0)
      p.text(2, svg_plot::top + row * static_cast<double>(i) + (row > 10 ? 13 : 10), t.tracks[i]);
  static constexpr const char* styles[] = {"first", "second", "third"};
  for (const auto& s : t.spans) {
    if (s.end_ns <= start || s.start_ns >= end) continue;
    const double y = svg_plot::top + row * s.track;
    const auto in_ms = [&](std::int64_t at) { return 1e-6 * static_cast<double>(std::clamp(at, start, end) - start); };
    std::string tip = s.name + ", " + time_text(static_cast<double>(s.end_ns - s.start_ns));
    if (s.batch != timeline_span::no_batch) tip += ", batch " + std::to_string(s.batch);
    const std::size_t number = number_of(s);
    p.bar({in_ms(s.start_ns), in_ms(s.end_ns), y + 1, y + row - 1}, number < batches.size() ? styles[number] : "other",
          tip);
  }
  return p.take();
}

}}}   // namespace millrace::detail
