// Keeps what a run predicts for later runs: when one of them has made that change, its report shows both numbers.
//
//   mr::run_report r = mr::report_of(run);
//   mr::compare_with("runs/6/report", r);        // what write_reports() left there; fills r.kept
//   mr::write_reports(r, "runs/7/report");       // with the predictions of this run
//
// Predictions are kept for the settings that the figures of a run show: workers, I/O threads, host slots, batch. A
// prediction is compared if the later run has exactly its settings: no prediction covers two changes at once.
// Format: one line of words and numbers for the run and for each prediction.
// Errors: io_error for a file that cannot be read, data_error for a file of another kind. Threads: any.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/report/run_report.hpp>

#include <array>
#include <fstream>
#include <limits>
#include <sstream>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

inline constexpr const char* predictions_head = "millrace predictions 1";

/// Workers, I/O threads, host slots, batch.
using kept_settings = std::array<std::size_t, 4>;

inline kept_settings settings_of(const flow_figures& f) {
  const stage_figures *const work = f.find(stage_kind::work), *const read = f.find(stage_kind::read);
  return {work ? work->concurrency : 0, read ? read->concurrency : 0, f.host_slots, f.batch_samples};
}

/// Returns the predictions of a run as the text of a .predictions file.
inline std::string predictions_text(const run_report& r) {
  const detail::kept_settings now = detail::settings_of(r.figures);
  std::ostringstream out;
  out.precision(std::numeric_limits<double>::max_digits10);
  const auto add = [&](const char* what, const detail::kept_settings& s, double samples_per_s) {
    out << what;
    for (const std::size_t number : s) out << ' ' << number;
    out << ' ' << samples_per_s;
  };
  out << detail::predictions_head << '\n';
  add("run", now, r.figures.samples_per_s());
  out << '\n';
  for (const knob_gain& k : r.gains) {
    const what_if_change& c = k.settings;
    if (c.storage_speed != 1 || c.work_time != 1 || (c.step_time != 1 && !c.batch)) continue;
    const detail::kept_settings then{c.workers.value_or(now[0]), c.io_threads.value_or(now[1]),
                                     c.prefetch.value_or(now[2]), c.batch.value_or(now[3])};
    if (then == now) continue;
    add("predicted", then, r.figures.samples_per_s() * (1 + k.gain));
    out << ' ' << k.change << (k.at_most ? " (at most)" : "") << '\n';
  }
  for (const run_report::point& p : r.scaling) {
    if (p.workers == now[0]) continue;
    add("predicted", {p.workers, now[1], now[2], now[3]}, p.samples_per_s);
    out << ' ' << now[0] << " -> " << p.workers << " workers\n";
  }
  return out.str();
}

}  // namespace detail

/// Compares this run with the predictions of an earlier run and adds those that apply to r.kept.
/// The path `earlier` is the one that write_reports() got in that run. Throws io_error or data_error for its file.
inline void compare_with(const std::string& earlier, run_report& r) {
  const std::string path = earlier + ".predictions";
  std::ifstream file(path);
  if (!file)
    throw io_error("cannot read the predictions of an earlier run " + printable(path),
                   "Give the path that its reports were written to, without an ending");
  std::string line, word, change;
  if (!std::getline(file, line) || line != detail::predictions_head)
    throw data_error(printable(path) + " holds no predictions of this version", "Write that run's reports anew");
  const detail::kept_settings now = detail::settings_of(r.figures);
  detail::kept_settings then{}, there{};
  while (std::getline(file, line)) {
    std::istringstream words(line);
    words >> word;
    detail::kept_settings& s = word == "run" ? then : there;
    for (std::size_t& number : s) words >> number;
    double samples_per_s = 0;
    if (!(words >> samples_per_s)) throw data_error(printable(path) + " is damaged", "Write that run's reports anew");
    if (word == "run" || there != now || then == now) continue;
    std::getline(words >> std::ws, change);
    const auto said = std::find_if(r.kept.begin(), r.kept.end(), [&](const auto& k) { return k.change == change; });
    if (said == r.kept.end()) r.kept.push_back({change, samples_per_s, r.figures.samples_per_s()});
  }
}

}}  // namespace millrace
