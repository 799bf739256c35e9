// Common code of the benchmarks: options, clocks, medians, and result lines for people (stdout) and programs (JSON).
//
//   int main(int argc, char** argv) {
//     bench::harness run(argc, argv, "engine");            // prints the machine; --quick, --json FILE
//     const bench::clocks before = bench::now();
//     ...
//     run.result("cost", bench::median(costs), "ns", bench::at_most(100));
//     return run.finish();                                 // repeats all result lines at the end
//   }
//
// A benchmark interleaves its variants, so that a change of the machine's load affects all of them alike.
#pragma once

#include <millrace/base/json_writer.hpp>
#include <millrace/base/machine.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bench {

/// Wall-clock time, and CPU time of the process including threads that have ended.
struct clocks {
  double wall_s = 0, cpu_s = 0;
  friend clocks operator-(const clocks& a, const clocks& b) { return {a.wall_s - b.wall_s, a.cpu_s - b.cpu_s}; }
};

inline double seconds_of(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}
inline clocks now() { return {seconds_of(CLOCK_MONOTONIC), seconds_of(CLOCK_PROCESS_CPUTIME_ID)}; }

/// Returns the quantile of at least one value: `share` of the values are below it.
inline double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const auto last = static_cast<double>(values.size() - 1);
  const double at = share * last;
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (at - std::floor(at)) * (values[high] - values[low]);
}
inline double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

/// A confidence interval of 95 % for the median of the distribution: order statistics by the binomial distribution, as
/// in the sign test.
struct interval {
  double low = 0, high = 0;
};
inline interval interval_of_median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  std::size_t outside = 0;   // values left out on each side
  const auto n = static_cast<double>(values.size());
  double chance = std::pow(0.5, n), below = chance;
  for (double k = 1; below <= 0.025 && 2 * (outside + 1) < values.size(); ++k) {
    ++outside;
    chance *= (n - k + 1) / k;
    below += chance;
  }
  if (outside > 0) --outside;
  return {values[outside], values[values.size() - 1 - outside]};
}

/// Runs the sides in the order one, other, other, one (reversed in every second pair), four times per pair, so that
/// neither a machine that slows down nor a neighbor that runs for a second favors a side. Prints the ratios of their
/// CPU times. Returns the upper bound of the interval for their median.
template <class One, class Other>
double compare_in_pairs(const char* what, int pairs, const One& one, const Other& other) {
  std::vector<double> ratios;
  for (int i = 0; i < pairs; ++i) {
    double first = 0, second = 0;
    for (int turn = 0; turn < 4; ++turn)
      for (const bool outer : {true, false, false, true})
        if (outer == (i % 2 == 0)) first += one();
        else second += other();
    ratios.push_back(first / second);
  }
  const interval within = interval_of_median(ratios);
  std::printf("  %s: ratio of CPU times in %d pairs %.3f, at 95 %% between %.3f and %.3f\n", what, pairs,
              median(ratios), within.low, within.high);
  return within.high;
}

/// "1.23 (1.20 .. 1.31)": median and range.
inline std::string spread(const std::vector<double>& values, const char* format = "%.3g") {
  std::string text;
  char number[64];
  const auto add = [&](double v, const char* before) {
    std::snprintf(number, sizeof number, format, v);
    text += before;
    text += number;
  };
  add(median(values), "");
  add(quantile(values, 0), " (");
  add(quantile(values, 1), " .. ");
  return text + ")";
}

struct goal {
  enum class kind { none, at_most, at_least } what = kind::none;
  double value = 0;
};
inline goal at_most(double value) { return {goal::kind::at_most, value}; }
inline goal at_least(double value) { return {goal::kind::at_least, value}; }

/// The folder for generated data.
inline std::string data_folder() {
  const char* folder = std::getenv("MILLRACE_BENCH_DATA");
  return folder && *folder ? folder : "build/bench/data";
}

using fact = std::pair<std::string, std::string>;   ///< a property of the machine: name, value

class harness {
 public:
  /// `first` is printed before everything else.
  harness(int argc, char** argv, std::string name, std::vector<fact> first = {})
      : name_(std::move(name)), facts_(std::move(first)) {
    for (int i = 1; i < argc; ++i) {
      const std::string_view argument = argv[i];
      if (argument == "--quick") quick_ = true;
      else if (argument == "--json" && i + 1 < argc) json_path_ = argv[++i];
      else if (argument == "--only" && i + 1 < argc) only_ = argv[++i];
      else {
        std::fprintf(stderr, "usage: %s [--quick] [--json FILE] [--only PART]\n", argv[0]);
        std::exit(2);
      }
    }
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    for (const fact& f : {fact{"cpu", cpu_name()}, fact{"cores", std::to_string(millrace::usable_cores())},
                          fact{"load", first_words_of("/proc/loadavg", 3)},
                          fact{"kernel", first_words_of("/proc/sys/kernel/osrelease", 1)}, fact{"compiler", compiler()},
                          fact{"flags", MILLRACE_BENCH_FLAGS}})
      facts_.push_back(f);
    for (const auto& [what, value] : facts_) std::printf("%s: %s\n", what.c_str(), value.c_str());
  }

  bool quick() const noexcept { return quick_; }
  /// Whether that part of the benchmark is selected: all are, unless --only names one.
  bool wants(std::string_view part) const { return only_.empty() || only_ == part; }

  void result(std::string name, double value, std::string unit, goal target = {}) {
    results_.push_back({std::move(name), value, std::move(unit), target});
    std::printf("  %s\n", line_of(results_.back()).c_str());
  }

  /// Prints a finding in words, and adds it to the machine's properties in the JSON.
  void finding(std::string what, std::string words) {
    std::printf("%s: %s\n", what.c_str(), words.c_str());
    facts_.emplace_back(std::move(what), std::move(words));
  }

  /// Replaces finish() if the machine lacks the hardware or software to measure: prints the reason, without results.
  int nothing_measured(const std::string& why) {
    std::printf("nothing measured: %s\n", why.c_str());
    return json_path_.empty() || write_json() ? 0 : 1;
  }

  /// Ends the program's output. Returns the exit status for main().
  int finish() {
    std::printf("load at the end: %s\n", first_words_of("/proc/loadavg", 3).c_str());
    for (const auto& r : results_) std::printf("%s\n", line_of(r).c_str());
    return json_path_.empty() || write_json() ? 0 : 1;
  }

 private:
  struct measurement {
    std::string name;
    double value;
    std::string unit;
    goal target;

    bool reached() const noexcept {
      return target.what == goal::kind::at_most ? value <= target.value : value >= target.value;
    }
  };

  static std::string line_of(const measurement& r) {
    char text[64];
    std::snprintf(text, sizeof text, "%.4g", r.value);
    std::string line = "result: " + r.name + " " + text + " " + r.unit;
    if (r.target.what == goal::kind::none) return line;
    std::snprintf(text, sizeof text, "%.4g", r.target.value);
    return line + " target " + text + (r.reached() ? " ok" : " short");
  }

  static std::string compiler() {
#if defined(__clang__)
    return "clang " __clang_version__;
#else
    return "g++ " __VERSION__;
#endif
  }

  static std::string first_words_of(const std::string& path, int words) {
    std::string line = millrace::detail::first_line(path);
    std::size_t at = 0;
    while (words-- > 0 && at != std::string::npos) at = line.find(' ', at + 1);
    return line.substr(0, at);
  }

  static std::string cpu_name() {
    std::string name = "unknown";
    if (std::FILE* file = std::fopen("/proc/cpuinfo", "re")) {
      char line[512];
      while (name == "unknown" && std::fgets(line, sizeof line, file)) {
        const std::string_view text = line;
        if (text.starts_with("model name")) name = text.substr(text.find(':') + 2);
      }
      std::fclose(file);
    }
    while (!name.empty() && name.back() == '\n') name.pop_back();
    return name;
  }

  bool write_json() const {
    using millrace::detail::append_json_number, millrace::detail::append_json_string;
    std::string json = "{\"benchmark\":";
    append_json_string(json, name_);
    json += quick_ ? ",\"quick\":true" : ",\"quick\":false";
    for (const auto& [what, value] : facts_) {
      json += ',';
      append_json_string(json, what);
      json += ':';
      append_json_string(json, value);
    }
    json += ",\"results\":[";
    for (const auto& r : results_) {
      json += &r == results_.data() ? "{\"name\":" : ",{\"name\":";
      append_json_string(json, r.name);
      json += ",\"value\":";
      append_json_number(json, r.value);
      json += ",\"unit\":";
      append_json_string(json, r.unit);
      if (r.target.what != goal::kind::none) {
        json += r.target.what == goal::kind::at_most ? ",\"at_most\":" : ",\"at_least\":";
        append_json_number(json, r.target.value);
        json += r.reached() ? ",\"ok\":true" : ",\"ok\":false";
      }
      json += '}';
    }
    json += "]}\n";
    std::FILE* file = std::fopen(json_path_.c_str(), "we");
    const bool written = file && std::fputs(json.c_str(), file) >= 0;
    const bool closed = file && std::fclose(file) == 0;
    if (!written || !closed) std::fprintf(stderr, "cannot write %s\n", json_path_.c_str());
    return written && closed;
  }

  std::string name_, json_path_, only_;
  bool quick_ = false;
  std::vector<fact> facts_;
  std::vector<measurement> results_;
};

/// Runs a benchmark's body. Prints the message of an error, and then returns exit status 1.
template <class Body>
int run_guarded(const Body& body) {
  try {
    return body();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}

}   // namespace bench
