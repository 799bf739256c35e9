// Definitions for saved_predictions.hpp.
#pragma once

#include <millrace/report/saved_predictions.hpp>

#include <millrace/base/error.hpp>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE kept_settings settings_of(const flow_statistics& f) {
  const stage_statistics *const work = f.find(stage_kind::work), *const read = f.find(stage_kind::read);
  return {work ? work->concurrency : 0, read ? read->concurrency : 0, f.host_slots, f.batch_samples};
}

MILLRACE_INLINE std::string predictions_text(const run_report& r) {
  const kept_settings now = settings_of(r.statistics);
  std::ostringstream out;
  out.precision(std::numeric_limits<double>::max_digits10);
  const auto add = [&](const char* what, const kept_settings& s, double samples_per_s) {
    out << what;
    for (const std::size_t number : s) out << ' ' << number;
    out << ' ' << samples_per_s;
  };
  out << predictions_head << '\n';
  add("run", now, r.statistics.samples_per_s());
  out << '\n';
  for (const knob_gain& k : r.gains) {
    const what_if_change& c = k.settings;
    if (c.storage_speed != 1 || c.work_time != 1 || (c.step_time != 1 && !c.batch)) continue;
    const kept_settings then{c.workers.value_or(now[0]), c.io_threads.value_or(now[1]), c.prefetch.value_or(now[2]),
                             c.batch.value_or(now[3])};
    if (then == now) continue;
    add("predicted", then, r.statistics.samples_per_s() * (1 + k.gain));
    out << ' ' << k.change << (k.at_most ? " (at most)" : "") << '\n';
  }
  for (const run_report::point& p : r.scaling) {
    if (p.workers == now[0]) continue;
    add("predicted", {p.workers, now[1], now[2], now[3]}, p.samples_per_s);
    out << ' ' << now[0] << " -> " << p.workers << " workers\n";
  }
  return out.str();
}

}   // namespace detail

MILLRACE_INLINE void compare_with(const std::string& earlier, run_report& r) {
  const std::string path = earlier + ".predictions";
  std::ifstream file(path);
  if (!file)
    throw io_error("cannot read the predictions file of the earlier run: " + printable(path),
                   "Pass the path that was passed to write_reports(), such as runs/6/report");
  std::string line, word, change;
  if (!std::getline(file, line) || line != detail::predictions_head)
    throw data_error(
        printable(path) + " does not contain predictions of the earlier run in the format of this version of Millrace",
        "Write the reports of that run again");
  const detail::kept_settings now = detail::settings_of(r.statistics);
  detail::kept_settings then{}, there{};
  while (std::getline(file, line)) {
    std::istringstream words(line);
    words >> word;
    detail::kept_settings& s = word == "run" ? then : there;
    for (std::size_t& number : s) words >> number;
    double samples_per_s = 0;
    if (!(words >> samples_per_s))
      throw data_error(printable(path) + " is damaged", "Write the reports of that run again");
    if (word == "run" || there != now || then == now) continue;
    std::getline(words >> std::ws, change);
    const auto entry = std::ranges::find(r.predictions, change, &run_report::checked_prediction::change);
    if (entry == r.predictions.end()) r.predictions.push_back({change, samples_per_s, r.statistics.samples_per_s()});
  }
}

}}   // namespace millrace
