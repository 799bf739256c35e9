// Definitions for status_line.hpp.
#pragma once

#include <millrace/train/status_line.hpp>

#include <millrace/base/error.hpp>

#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE status_line::status_line(status_line_options options) : options_(options) {
  using output = status_line_options::output;
  const char* type = std::getenv("TERM");
  const bool able = type && std::strcmp(type, "dumb") != 0 && ::isatty(options_.file) == 1;
  terminal_ = options_.kind == output::terminal || (options_.kind == output::detect && able);
  const char* no_color = std::getenv("NO_COLOR");
  dim_names_ = terminal_ && !(no_color && *no_color);
}

MILLRACE_RARE void status_line::write(const row& r) {
  if (!r.message.empty()) {
    print((terminal_ ? "\r\x1b[K" : "") + printable(r.message, r.message.size()) + "\n");
    on_screen_ = false;
    changed_ = changed_ || (terminal_ && step_known_);
  }
  if (r.values.empty() && r.nonfinite == 0) return;
  step_ = r.step;
  step_known_ = changed_ = true;
  if (r.epoch) epoch_ = r.epoch;
  nonfinite_ += r.nonfinite;
  for (const auto& q : r.values) {
    const auto entry = std::find_if(latest_.begin(), latest_.end(), [&](const auto& l) { return l.name == q.name; });
    if (entry == latest_.end()) latest_.push_back(q);
    else *entry = q;
  }
}

MILLRACE_INLINE void status_line::tick(instant now) {
  const std::int64_t pause_ns = terminal_ ? redraw_ns : options_.plain_interval.count();
  if (!changed_ || (drawn_once_ && now.steady_ns - drawn_ns_ < pause_ns)) return;
  drawn_ns_ = now.steady_ns;
  drawn_once_ = true;
  draw();
}

MILLRACE_INLINE void status_line::close() {
  if (changed_) draw();
  if (terminal_ && on_screen_) print("\n");
  on_screen_ = false;
}

MILLRACE_INLINE std::string status_line::number(const quantity& q) {
  char text[48];
  if (q.unit == quantity_unit::share) std::snprintf(text, sizeof text, "%.1f%%", q.value * 100);
  else if (q.unit == quantity_unit::count) std::snprintf(text, sizeof text, "%.0f", q.value);
  else if (q.unit == quantity_unit::per_second && q.value >= 100) std::snprintf(text, sizeof text, "%.0f", q.value);
  else std::snprintf(text, sizeof text, "%.4g", q.value);
  return text;
}

MILLRACE_RARE void status_line::draw() {
  cells_.clear();
  if (epoch_) cells_.push_back({"epoch", std::to_string(*epoch_), 1});
  cells_.push_back({"step", std::to_string(step_), 4});
  for (const auto& q : latest_) {
    if (q.unit == quantity_unit::count && has(q.name + std::string(per_second))) continue;
    std::string label = printable(q.name);
    const bool rate = q.unit == quantity_unit::per_second;
    if (rate && label.ends_with(per_second)) label.replace(label.size() - per_second.size(), per_second.size(), "/s");
    cells_.push_back({std::move(label), number(q), rate ? 3 : q.name == "data_wait" ? 2 : 0});
  }
  if (nonfinite_ > 0) cells_.push_back({"nonfinite", std::to_string(nonfinite_), 1});
  if (terminal_) remove_cells(columns());

  line_ = terminal_ ? "\r" : "";
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    if (i > 0) line_ += "  ";
    if (dim_names_) line_ += "\x1b[2m";
    line_ += cells_[i].label;
    line_ += dim_names_ ? "\x1b[0m " : " ";
    line_ += cells_[i].value;
  }
  line_ += terminal_ ? "\x1b[K" : "\n";
  print(line_);
  changed_ = false;
  on_screen_ = terminal_;
}

MILLRACE_INLINE bool status_line::has(std::string_view name) const {
  return std::any_of(latest_.begin(), latest_.end(), [&](const quantity& q) { return q.name == name; });
}

MILLRACE_RARE void status_line::remove_cells(std::size_t space) {
  const auto width = [&] {
    std::size_t sum = 0;
    for (const cell& c : cells_) sum += (sum > 0 ? 2 : 0) + c.label.size() + 1 + c.value.size();
    return sum;
  };
  while (!cells_.empty() && width() > space) {
    auto least = cells_.begin();
    for (auto c = cells_.begin(); c != cells_.end(); ++c)
      if (c->rank <= least->rank) least = c;   // the last cell of equal rank
    cells_.erase(least);
  }
}

MILLRACE_INLINE std::size_t status_line::columns() const noexcept {
  std::size_t all = options_.columns.value_or(0);
  winsize size{};
  if (all == 0 && ::ioctl(options_.file, TIOCGWINSZ, &size) == 0) all = size.ws_col;
  return all == 0 ? 79 : all - 1;
}

MILLRACE_RARE void status_line::print(std::string_view text) const {
  while (!text.empty()) {
    const ssize_t n = ::write(options_.file, text.data(), text.size());
    if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
    else if (n == 0 || errno != EINTR)
      throw io_error(std::string("cannot write the status line: ") + std::strerror(n == 0 ? EIO : errno),
                     "Check the file descriptor status_line_options::file");
  }
}

}}   // namespace millrace
