// Shows the state of the training in one line of a terminal, or in plain lines of a file.
//
//   mr::log out(mr::status_line{});
//   // epoch 3  step 1200  loss 0.4512  top1 81.2%  samples/s 3120  data_wait 0.4%
//
// The line shows the latest value of each name, in order of first appearance. If the log has a count `x` and its rate
// `x_per_s`, the line shows only the rate. On a terminal, the line is redrawn in place, at most ten times a second. If
// the terminal is too narrow, the line omits the less important values. If the output is not a terminal (a pipe, a
// batch system's file), a line is written every `plain_interval`. close() leaves the last state on the screen. Names
// are dimmed unless NO_COLOR is set.
// Errors: io_error. Threads: the log's writer thread.
// Source: no-color.org for NO_COLOR; ECMA-48 (EL, SGR 2) for erasing and dimming.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/train/log.hpp>

#include <condition_variable>   // declares std::chrono's durations; <chrono> costs more compile time
#include <optional>
#include <string>
#include <unistd.h>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// The destination and the frequency of the status line.
struct status_line_options {
  enum class output { detect, terminal, plain };

  int file = STDERR_FILENO;   ///< file descriptor, not owned
  output kind = output::detect;
  std::optional<std::size_t> columns{};   ///< terminal width to assume; by default the actual width
  std::chrono::nanoseconds plain_interval = std::chrono::seconds(10);   ///< minimum time between plain lines
};

/// A sink that shows the latest values in one line.
class status_line final : public sink {
 public:
  explicit status_line(status_line_options options = {});

  const char* name() const noexcept override { return "status line"; }

  MILLRACE_INLINE void write(const row& r) override;

  MILLRACE_INLINE void tick(instant now) override;

  MILLRACE_INLINE void close() override;

 private:
  static constexpr std::int64_t redraw_ns = 100'000'000;   // minimum time between redraws

  static constexpr std::string_view per_second = "_per_s";

  /// Returns the text of a value in a cell, with few digits, because space is limited.
  static std::string number(const quantity& q);
  void draw();

  struct cell {
    std::string label, value;
    int rank;   // importance; cells with the lowest number are omitted first
  };

  bool has(std::string_view name) const;

  /// Removes cells until the rest fits into `space` columns.
  void remove_cells(std::size_t space);

  /// Returns the width minus one, because some terminals start a new line after a character in the last column.
  std::size_t columns() const noexcept;
  void print(std::string_view text) const;

  status_line_options options_;
  bool terminal_ = false, dim_names_ = false;
  bool changed_ = false, on_screen_ = false, drawn_once_ = false, step_known_ = false;
  std::int64_t drawn_ns_ = 0;
  std::uint64_t step_ = 0, nonfinite_ = 0;
  std::optional<std::uint64_t> epoch_{};
  std::vector<quantity> latest_;   // the last value of each name in the log so far
  std::vector<cell> cells_;
  std::string line_;
};

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/train/impl/status_line.inl>
#endif
