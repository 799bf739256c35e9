// verdict: bottlenecks planted in real runs whose stages sleep, compared with the verdicts of the live runs
//
//   sh bench/run.sh verdict                                # 6 bottlenecks x 4 ratios x 10 seeds, and balanced ones
//   sh bench/run.sh verdict --seeds 40 --at-once 4         # the long run
//
// The planted stage is `ratio` times slower than the next one; with a ratio of 1 the two are balanced. From 1.25 up,
// the change that the planted stage requires is run as well, to compare the predicted gain with the measured one.
// Stages sleep (sleeping_flow.hpp), so several runs at once do not disturb each other: each is a separate process.
#include "harness.hpp"
#include "parts/sleeping_flow.hpp"

#include "../examples/command_line.hpp"

#include <millrace/report/simulate/what_if.hpp>

#include <array>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace mr = millrace;

namespace {

enum class planted { latency, bandwidth, unpack, work, transfer, consumer };
constexpr planted all_planted[] = {planted::latency, planted::bandwidth, planted::unpack,
                                   planted::work,    planted::transfer,  planted::consumer};
constexpr const char* names[] = {"latency", "bandwidth", "unpack", "work", "transfer", "consumer"};
constexpr const char* name_of(planted p) { return names[static_cast<std::size_t>(p)]; }

bench::sleeping_settings plant(planted where, double ratio, std::uint64_t seed) {
  mr::rng random({.seed = seed, .stage = static_cast<std::uint64_t>(where)});
  const std::size_t slowest = where <= planted::unpack ? 0 : static_cast<std::size_t>(where) - 2;
  const std::size_t runner_up = (slowest + 1 + random.below(3)) % 4;
  std::array<double, 4> ns{};   // of a sample: reading, work, copy, step
  for (std::size_t i = 0; i < 4; ++i)
    ns[i] = i == slowest ? 2e6 : 2e6 / ratio / (i == runner_up ? 1 : random.uniform(1, 3));
  bench::sleeping_settings s;
  s.io_threads = 1 + random.below(5);
  s.workers = 1 + random.below(6);
  s.prefetch = 3 + random.below(2);
  s.device_slots = 2 + random.below(2);
  s.batch = 8U << random.below(2);
  s.samples_per_read = 1 + random.below(4);
  s.one_pipe = where == planted::bandwidth;
  const double read_ns = ns[0] * static_cast<double>(s.samples_per_read) *
                         (s.one_pipe ? 1 : static_cast<double>(s.io_threads));
  s.read_ns = where == planted::unpack ? 0.2 * read_ns : read_ns;
  if (where == planted::unpack) s.unpack_ns = 0.8 * read_ns;
  s.work_ns = ns[1] * static_cast<double>(s.workers);
  s.copy_ns = ns[2] * static_cast<double>(s.batch);
  s.step_ns = ns[3] * static_cast<double>(s.batch);
  s.seed = seed;
  s.batches = 720 / s.batch;
  return s;
}

/// Returns the column of the matrix.
std::string verdict_name(const mr::verdict& v) {
  switch (v.what) {
    case mr::bound_by::io: return "I/O";
    case mr::bound_by::cpu:
    case mr::bound_by::cpu_starved: return v.where == "unpack" ? "unpack" : "work";
    case mr::bound_by::transfer: return "transfer";
    case mr::bound_by::consumer: return "consumer";
    case mr::bound_by::balanced: return "balanced";
    case mr::bound_by::unknown: break;
  }
  return "nothing";
}
std::string expected(planted p) { return p <= planted::bandwidth ? "I/O" : name_of(p); }

/// Turns the knob that the planted stage requires. Returns false if no gain without reservation is predicted for it.
bool turn_knob(planted where, bench::sleeping_settings& s, mr::what_if_change& change) {
  switch (where) {
    case planted::latency:
    case planted::unpack: change.io_threads = s.io_threads *= 2; return true;
    case planted::bandwidth: s.read_ns /= change.storage_speed = 2; return true;
    case planted::work: change.workers = ++s.workers; return true;
    case planted::consumer: s.step_ns *= change.step_time = 0.5; return true;
    case planted::transfer: break;
  }
  return false;
}

/// Returns the gain that the run's report predicts for that change; nothing if the prediction is only a bound.
std::optional<double> predicted_gain(const mr::flow_statistics& f, const mr::verdict& v, const mr::what_if_change& c) {
  for (const mr::knob_gain& k : v.saturation < 0.95 ? mr::simulated_gains(f) : mr::gains_of(f)) {
    const mr::what_if_change& s = k.settings;
    if (s.workers != c.workers || s.io_threads != c.io_threads || s.storage_speed != c.storage_speed ||
        s.step_time != c.step_time || s.batch || s.prefetch || s.work_time != 1)
      continue;
    if (!k.at_most) return k.gain;
  }
  return std::nullopt;
}

/// Trivially copyable, because it crosses processes.
struct trial {
  planted where = planted::work;
  double ratio = 1;
  std::uint64_t seed = 1;
  double gain_error = -1;   // below 0: no prediction
  char verdict_name[16] = "nothing", sentence[160] = "it ended early";

  bool is(const std::string& name) const { return name == verdict_name; }
  bool right() const { return is(expected(where)) || (ratio < 1.25 && is("balanced")); }
};

void attempt(trial& t) {
  bench::sleeping_settings s = plant(t.where, t.ratio, t.seed);
  mr::flow_statistics f = bench::run_asleep(s);
  // Sleeping stages need no core, so the run delay by other programs is not evidence about the planted stage.
  f.usable_cores = 64;
  f.run_delay_ns = f.throttled_ns = 0;
  for (mr::stage_statistics& stage : f.stages) stage.run_delay_ns = 0;
  const mr::verdict v = mr::judge(f);
  std::snprintf(t.verdict_name, sizeof t.verdict_name, "%s", verdict_name(v).c_str());
  std::snprintf(t.sentence, sizeof t.sentence, "%s", v.sentence().c_str());
  mr::what_if_change change;
  if (t.ratio < 1.25 || !turn_knob(t.where, s, change)) return;
  if (const auto gain = predicted_gain(f, v, change))
    t.gain_error = std::abs((1 + *gain) * f.samples_per_s() / bench::run_asleep(s).samples_per_s() - 1);
}

/// Runs the trials in `at_once` processes; each one runs every `at_once`-th trial.
std::span<trial> attempt_all(const std::vector<trial>& trials, unsigned at_once) {
  void* const shared = ::mmap(nullptr, trials.size() * sizeof(trial), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw mr::io_error("mmap() cannot share the trials", "Use fewer seeds");
  const std::span<trial> all(static_cast<trial*>(shared), trials.size());
  std::uninitialized_copy(trials.begin(), trials.end(), all.begin());
  for (unsigned process = 0; process < at_once; ++process) {
    const pid_t child = ::fork();
    if (child == -1) throw mr::io_error("fork() failed", "Use a smaller --at-once");
    if (child != 0) continue;
    for (std::size_t i = process; i < all.size(); i += at_once) attempt(all[i]);
    ::_exit(0);
  }
  while (::wait(nullptr) > 0) {}
  return all;
}

void print_matrix(std::span<const trial> all, double ratio) {
  constexpr const char* columns[] = {"I/O", "unpack", "work", "transfer", "consumer", "balanced", "nothing"};
  std::printf("\nx %.4g     ", ratio);
  for (const char* c : columns) std::printf(" %8s", c);
  std::printf("\n");
  for (const planted p : all_planted) {
    std::map<std::string, int> counts;
    for (const trial& t : all)
      if (t.where == p && t.ratio == ratio) ++counts[t.verdict_name];
    std::printf("%-10s", name_of(p));
    for (const char* c : columns) std::printf(counts[c] > 0 ? " %8d" : " %8.0d", counts[c]);
    std::printf("\n");
  }
}

int measure(int argc, char** argv) {
  command_line args(argc, argv, "usage: verdict [--seeds N] [--at-once N] [--quick] [--json FILE]");
  const bool quick = args.flag("--quick");
  const unsigned seeds = args.number("--seeds", quick ? 2U : 10U), at_once = args.number("--at-once", 4U);
  const std::string json = args.text("--json", "");
  if (!args.rest().empty() || seeds == 0 || at_once == 0) args.refuse("all arguments have a name, and are at least 1");
  std::string words[] = {argv[0], "--json", json};
  char* common[] = {words[0].data(), words[1].data(), words[2].data()};
  bench::harness run(json.empty() ? 1 : 3, common, "verdict");

  constexpr double ratios[] = {1, 1.1, 1.25, 1.5, 2};
  std::vector<trial> trials;
  for (const double ratio : ratios)
    for (const planted p : all_planted)
      for (unsigned seed = 1; seed <= seeds; ++seed) trials.push_back({.where = p, .ratio = ratio, .seed = seed});
  const std::span<trial> all = attempt_all(trials, at_once);

  for (const double ratio : ratios) print_matrix(all, ratio);
  std::printf("\nmisses from x 1.25 up, and balanced runs with another verdict\n");
  std::map<double, std::size_t> right, balanced;
  std::vector<double> errors;
  for (const trial& t : all) {
    const bool is_right = t.ratio == 1 ? t.is("balanced") : t.right();
    right[t.ratio] += is_right;
    if (!is_right && t.ratio != 1.1)
      std::printf("  %s x %.4g, seed %llu: %s\n", name_of(t.where), t.ratio, static_cast<unsigned long long>(t.seed),
                  t.sentence);
    if (t.gain_error >= 0) errors.push_back(100 * t.gain_error);
  }
  const double of_each = static_cast<double>(seeds * std::size(all_planted));
  std::printf("\n");
  double from_there_up = 0;
  for (const double ratio : ratios) {
    const double share = 100 * static_cast<double>(right[ratio]) / of_each;
    if (ratio >= 1.25) from_there_up += share / 3;
    char name[32];
    std::snprintf(name, sizeof name, ratio == 1 ? "balanced" : "right_x%.0f", 100 * ratio);
    run.result(name, share, "%");
  }
  run.result("right_from_x125_up", from_there_up, "%", bench::at_least(95));
  std::printf("gains: %zu predictions, errors %s %%, 9 of 10 below %.1f %%\n", errors.size(),
              bench::spread(errors, "%.1f").c_str(), bench::quantile(errors, 0.9));
  run.result("gain_error_median", bench::median(errors), "%", bench::at_most(5));
  return run.finish();
}

}   // namespace

int main(int argc, char** argv) {
  return bench::run_guarded([&] { return measure(argc, argv); });
}
