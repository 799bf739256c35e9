// The lengths of the steps of a real training, from its log (train/json_lines.hpp), to emulate such steps.
//
//   const bench::logged_steps log = bench::steps_of_log("runs/7/train.jsonl");
//   chip.launch_step(64 * log.sample_s * log.factor(n));      // the n-th step, at a batch of 64, without waits
//
// A row is the mean of the steps since the previous row. 16 consecutive steps are as long as the rows at 16 quantiles,
// short and long ones mixed, and their mean is that of all samples in the log. Errors: setup_error for a log without
// rows with samples_per_s and data_wait. Threads: a value.
#pragma once

#include <millrace/base/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace bench {

struct logged_steps {
  double sample_s = 0;   ///< mean
  std::array<double, 16> factors{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

  double factor(std::size_t step) const noexcept { return factors[step % factors.size()]; }
};

/// Returns the number after `"name":` in a row of JSON lines, or NaN if there is none.
inline double number_in_row(const std::string& row, const std::string& name) {
  const std::size_t at = row.find('"' + name + "\":");
  return at == std::string::npos ? std::numeric_limits<double>::quiet_NaN()
                                 : std::strtod(row.c_str() + at + name.size() + 3, nullptr);
}

inline logged_steps steps_of_log(const std::string& path) {
  std::ifstream file(path);
  std::vector<double> rows;   // seconds of a sample
  double seconds = 0, samples = 0;
  for (std::string row; std::getline(file, row);) {
    const double rate = number_in_row(row, "samples_per_s"), wait = number_in_row(row, "data_wait");
    const double of_row = number_in_row(row, "samples");
    if (std::isnan(rate) || std::isnan(wait) || rate <= 0) continue;
    rows.push_back((1 - wait) / rate);
    const double weight = of_row > 0 ? of_row : 1;
    seconds += weight * rows.back();
    samples += weight;
  }
  if (rows.empty())
    throw millrace::setup_error("no row of " + millrace::printable(path) + " has samples_per_s and data_wait",
                                "Pass the train.jsonl of a run");
  logged_steps log{.sample_s = seconds / samples};
  std::sort(rows.begin(), rows.end());
  constexpr std::size_t mixed[] = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};   // bits reversed
  double sum = 0;
  for (std::size_t i = 0; i < log.factors.size(); ++i) {
    log.factors[i] = rows[(2 * mixed[i] + 1) * rows.size() / (2 * log.factors.size())];
    sum += log.factors[i];
  }
  for (double& f : log.factors) f *= sum > 0 ? static_cast<double>(log.factors.size()) / sum : 0;
  return log;
}

}   // namespace bench
