// Definitions for run_report.hpp.
#pragma once

#include <millrace/report/run_report.hpp>

#include <millrace/base/error.hpp>
#include <millrace/base/format.hpp>
#include <millrace/report/simulate/what_if.hpp>

#include <sys/utsname.h>
#include <time.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <map>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE bool picture_statistics::add(const event_count& c) {
  const detail::event_name name = detail::event_of_text(c.what);
  if (const char* const why = libjpeg_reason(name)) {
    by_libjpeg.push_back({why, c.times});
    std::stable_sort(by_libjpeg.begin(), by_libjpeg.end(),
                     [](const reason& a, const reason& b) { return a.pictures > b.pictures; });
    return true;
  }
  std::uint64_t* const sum = sum_of(name);
  if (sum) *sum += c.times;
  return sum != nullptr;
}

MILLRACE_INLINE std::uint64_t* picture_statistics::sum_of(detail::event_name name) noexcept {
  using detail::event_name;
  switch (name) {
    case event_name::own_together: return &own_together;
    case event_name::own_alone: return &own_alone;
    case event_name::smaller: return &smaller;
    case event_name::by_entries: return &by_entries;
    case event_name::by_restarts: return &by_restarts;
    case event_name::entries_refused: return &entries_refused;
    case event_name::progressive: return &progressive;
    case event_name::damaged: return &damaged;
    case event_name::warnings: return &warnings;
    case event_name::bytes: return &bytes;
    case event_name::pixels: return &pixels;
    default: return nullptr;
  }
}

MILLRACE_INLINE std::uint64_t picture_statistics::libjpeg() const noexcept {
  std::uint64_t sum = 0;
  for (const reason& r : by_libjpeg) sum += r.pictures;
  return sum;
}

MILLRACE_INLINE double picture_statistics::share(std::uint64_t of_them) const noexcept {
  return pictures() > 0 ? static_cast<double>(of_them) / static_cast<double>(pictures()) : 0;
}

MILLRACE_INLINE double picture_statistics::bytes_per_pixel() const noexcept {
  return pixels > 0 ? static_cast<double>(bytes) / static_cast<double>(pixels) : 0;
}

namespace detail {

MILLRACE_INLINE std::string line_of_process_after(const char* path, std::string_view word) {
  std::string value;
  if (const auto file = open_text(path)) {
    char line[512];
    while (value.empty() && std::fgets(line, sizeof line, file.get())) {
      const std::string_view text = line;
      const std::size_t colon = text.find(':');
      if (text.starts_with(word) && colon != std::string_view::npos)
        value = text.substr(std::min(text.find_first_not_of(" \t", colon + 1), text.size()));
    }
  }
  while (!value.empty() && value.back() == '\n') value.pop_back();
  return value;
}

MILLRACE_INLINE std::string arguments_of_this_process() {
  std::string all;
  if (const auto file = open_text("/proc/self/cmdline")) {
    char piece[4096];
    while (const std::size_t length = std::fread(piece, 1, sizeof piece, file.get())) all.append(piece, length);
  }
  return all;
}

MILLRACE_INLINE std::string command_line_of_run(std::string_view arguments) {
  constexpr std::size_t most = 2'000;
  constexpr std::string_view for_a_shell = " \t\n\"'\\$&;|<>()*?[]{}#~`!";
  std::string command;
  while (!arguments.empty()) {
    const std::size_t end = std::min(arguments.find('\0'), arguments.size());
    const std::string_view argument = arguments.substr(0, end);
    const bool plain = !argument.empty() && argument.find_first_of(for_a_shell) == std::string_view::npos;
    command += command.empty() ? "" : " ";
    const std::string escaped = printable(argument, argument.size());
    command += plain ? escaped : "'" + escaped + "'";
    arguments.remove_prefix(std::min(end + 1, arguments.size()));
  }
  if (command.size() <= most) return command;
  command.resize(most);
  return command + " ...";
}

}   // namespace detail

MILLRACE_INLINE run_origin run_origin::now() {
  run_origin o;
  const std::string arguments = detail::arguments_of_this_process();
  const std::string path = arguments.substr(0, arguments.find('\0'));
  o.program = printable(path.substr(path.rfind('/') + 1));
  o.command = detail::command_line_of_run(arguments);
  const std::time_t seconds = std::time(nullptr);
  std::tm utc{};
  char date[40] = "";
  if (::gmtime_r(&seconds, &utc)) std::strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S UTC", &utc);
  o.date = date;
  o.machine = printable(detail::line_of_process_after("/proc/cpuinfo", "model name"));
#if defined(__unix__)
  utsname system{};
  if (::uname(&system) == 0) {
    if (o.machine.empty()) o.machine = printable(system.machine);
    o.machine += ", " + detail::bytes_text(static_cast<double>(detail::usable_memory_bytes())) + ", " +
                 printable(std::string(system.sysname) + " " + system.release + " on " + system.nodename);
  }
#endif
  return o;
}

MILLRACE_INLINE run_report report_of(flow_statistics statistics, timeline events) {
  run_report r;
  r.conclusion = judge(statistics);
  const bool in_turns = r.conclusion.what != bound_by::unknown && r.conclusion.saturation < 0.95;
  r.gains = in_turns ? simulated_gains(statistics) : gains_of(statistics);
  std::stable_sort(r.gains.begin(), r.gains.end(), [](const auto& a, const auto& b) {
    return a.gain != b.gain ? a.gain > b.gain : a.at_most < b.at_most;   // equal gains: bounds last
  });
  const stage_statistics* const work = statistics.find(stage_kind::work);
  if (work && r.conclusion.what != bound_by::unknown) {
    // More workers than cores are not modeled.
    const std::size_t most = statistics.usable_cores == 0
                                 ? 2 * work->concurrency
                                 : std::max({statistics.usable_cores, work->concurrency, std::size_t{2}});
    const std::size_t step = (most + 7) / 8;
    const double now = statistics.samples_per_s();
    std::map<std::size_t, double> by_workers;
    for (std::size_t w = 1; w <= most; w = w < step ? step : w + step)
      by_workers[w] = std::min(what_if(statistics, {.workers = w}).samples_per_s,
                               w > work->concurrency ? now * detail::processor_gain(statistics, *work, w)
                                                     : std::numeric_limits<double>::infinity());
    by_workers[work->concurrency] = now;   // measured, not predicted
    for (const auto& [workers, rate] : by_workers) r.scaling.push_back({workers, rate, workers == work->concurrency});
  }
  r.statistics = std::move(statistics);
  r.events = std::move(events);
  return r;
}

namespace detail {

MILLRACE_INLINE void measure_receiving_if_useful(flow_statistics& f) {
  const bound_by what = judge(f).what;
  if (what == bound_by::cpu || what == bound_by::cpu_starved) f.receive_ns_per_byte = measure_receiving();
}

MILLRACE_INLINE void add_run_counts(run_report& r, const std::vector<event_count>& counts) {
  for (const event_count& c : counts)
    if (!r.pictures.add(c)) r.counts.push_back(c);
  const bool on_processors = r.conclusion.what == bound_by::cpu || r.conclusion.what == bound_by::cpu_starved;
  if (const double share = r.pictures.share(r.pictures.progressive); on_processors && share >= 0.05)
    r.conclusion.evidence.push_back(percent(share) + " of the JPEGs are progressive: they take over twice the "
                                                     "time; examples/repack converts them to baseline");
}

}   // namespace detail

}}   // namespace millrace
