// Shows the state of the training in one line of a terminal, or in plain lines of a file.
//
//   mr::log out(mr::status_line{});
//   // epoch 3  step 1200  loss 0.4512  top1 81.2%  samples/s 3120  data_wait 0.4%
//
// The line has the latest value of each name, in order of first appearance. A count with a rate shows only the rate:
// the count is that of one interval and would look like a total.
// On a terminal the line is redrawn in place, at most ten times a second. If the terminal is too narrow, whole cells
// are left out, the last ones first; epoch, rates, `data_wait` and the step stay longest. Elsewhere (a pipe, a batch
// system's file) a line comes every `plain_ns`. The last state stays on screen. Names are dimmed unless NO_COLOR is
// set.
// Errors: io_error. Threads: the log's writer thread.
// Source: NO_COLOR after no-color.org; erasing and dimming by ECMA-48 (EL, SGR 2).
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/train/sink.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/ioctl.h>
#include <unistd.h>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// Where the status line goes and how often it is drawn.
struct status_line_options {
  enum class output { detect, terminal, plain };

  int file = STDERR_FILENO;                 ///< file descriptor, not owned
  output kind = output::detect;
  std::size_t columns = 0;                  ///< width of the line; 0: asks the terminal before each redraw
  std::int64_t plain_ns = 10'000'000'000;   ///< least time between lines elsewhere
};

/// A sink that shows the latest values in one line.
class status_line final : public sink {
 public:
  explicit status_line(status_line_options options = {}) : options_(options) {
    using output = status_line_options::output;
    const char* type = std::getenv("TERM");
    const bool able = type && std::strcmp(type, "dumb") != 0 && ::isatty(options_.file) == 1;
    terminal_ = options_.kind == output::terminal || (options_.kind == output::detect && able);
    const char* no_color = std::getenv("NO_COLOR");
    dim_names_ = terminal_ && !(no_color && *no_color);
  }

  const char* name() const noexcept override { return "status line"; }

  void write(const row& r) override {
    if (!r.message.empty()) {
      print((terminal_ ? "\r\x1b[K" : "") + printable(r.message) + "\n");
      on_screen_ = false;
      changed_ = changed_ || (terminal_ && step_known_);
    }
    if (r.values.empty() && r.nonfinite == 0) return;
    step_ = r.step;
    step_known_ = changed_ = true;
    if (r.epoch) epoch_ = r.epoch;
    nonfinite_ += r.nonfinite;
    for (const auto& q : r.values) {
      const auto known = std::find_if(latest_.begin(), latest_.end(), [&](const auto& l) { return l.name == q.name; });
      if (known == latest_.end()) latest_.push_back(q);
      else *known = q;
    }
  }

  void tick(instant now) override {
    if (!changed_ || (drawn_once_ && now.steady_ns - drawn_ns_ < (terminal_ ? redraw_ns : options_.plain_ns)))
      return;
    drawn_ns_ = now.steady_ns;
    drawn_once_ = true;
    draw();
  }

  void close() override {
    if (changed_) draw();
    if (terminal_ && on_screen_) print("\n");
    on_screen_ = false;
  }

 private:
  static constexpr std::int64_t redraw_ns = 100'000'000;   // least time between redraws: ten a second

  static constexpr std::string_view per_second = "_per_s";

  /// Returns a value as a cell shows it: few digits, because width is scarce.
  static std::string number(const quantity& q) {
    char text[48];
    if (q.unit == quantity_unit::share) std::snprintf(text, sizeof text, "%.1f%%", q.value * 100);
    else if (q.unit == quantity_unit::count) std::snprintf(text, sizeof text, "%.0f", q.value);
    else if (q.unit == quantity_unit::per_second && q.value >= 100) std::snprintf(text, sizeof text, "%.0f", q.value);
    else std::snprintf(text, sizeof text, "%.4g", q.value);
    return text;
  }

  void draw() {
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
    if (terminal_) leave_out(columns());

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

  struct cell {
    std::string label, value;
    int rank;   // cells of the lowest rank are left out first
  };

  bool has(std::string_view name) const {
    return std::any_of(latest_.begin(), latest_.end(), [&](const quantity& q) { return q.name == name; });
  }

  /// Removes cells until the rest fits into `room` columns.
  void leave_out(std::size_t room) {
    const auto width = [&] {
      std::size_t sum = 0;
      for (const cell& c : cells_) sum += (sum > 0 ? 2 : 0) + c.label.size() + 1 + c.value.size();
      return sum;
    };
    while (!cells_.empty() && width() > room) {
      auto least = cells_.begin();
      for (auto c = cells_.begin(); c != cells_.end(); ++c)
        if (c->rank <= least->rank) least = c;   // the last of equal ones
      cells_.erase(least);
    }
  }

  /// Returns the width minus one: a character in the last column makes some terminals start a new line.
  std::size_t columns() const noexcept {
    std::size_t all = options_.columns;
    winsize size{};
    if (all == 0 && ::ioctl(options_.file, TIOCGWINSZ, &size) == 0) all = size.ws_col;
    return all == 0 ? 79 : all - 1;
  }

  void print(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t n = ::write(options_.file, text.data(), text.size());
      if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
      else if (n == 0 || errno != EINTR)
        throw io_error(std::string("cannot write the status line: ") + std::strerror(n == 0 ? EIO : errno), "");
    }
  }

  status_line_options options_;
  bool terminal_ = false, dim_names_ = false;
  bool changed_ = false, on_screen_ = false, drawn_once_ = false, step_known_ = false;
  std::int64_t drawn_ns_ = 0;
  std::uint64_t step_ = 0, nonfinite_ = 0;
  std::optional<std::uint64_t> epoch_{};
  std::vector<quantity> latest_;   // one per name that was ever logged
  std::vector<cell> cells_;
  std::string line_;
};

}}  // namespace millrace
