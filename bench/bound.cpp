// bound: the bottleneck of a training on your shards, by ablations and by live statistics, and the settings to use
//
//   sh bench/run.sh bound --data 'shards-{000..009}.tar' --step 0.02      # all options: bench/parts/bound_settings.hpp
//
// The same training runs with one part removed at a time (bench/parts/bound_variants.hpp), interleaved, so that a
// change of the machine's load affects all variants alike. Then the run's own statistics are evaluated. Both verdicts
// are printed, with a note if they differ.
#include "harness.hpp"
#include "parts/bound_data.hpp"
#include "parts/bound_variants.hpp"
#include "parts/bound_verdict.hpp"
#include "parts/emulated_accelerator.hpp"
#ifdef MILLRACE_CUDA
#include "parts/gpu_accelerator.hpp"
#endif

#include <millrace/report.hpp>

#include <map>

namespace mr = millrace;

namespace {

std::unique_ptr<bench::accelerator> find_accelerator() {
#ifdef MILLRACE_CUDA
  if (auto gpu = bench::gpu_accelerator::find()) return gpu;
#endif
  return std::make_unique<bench::emulated_accelerator>();
}

using all_rates = std::map<std::string, std::vector<double>>;

double rate_of(const all_rates& rates, const std::string& name) { return bench::median(rates.at(name)); }

/// Returns the name as results spell it.
std::string plain(std::string name) {
  for (char& c : name)
    if (c == '-' || c == '+') c = '_';
  return name;
}

/// Prints the stalls, and returns them as facts for the page.
std::vector<bench::fact> print_stalls(bench::harness& run, const all_rates& rates, const std::string& real,
                                      std::size_t batch) {
  std::vector<bench::fact> facts;
  const auto ms = [&](const char* name) { return 1e3 * static_cast<double>(batch) / rate_of(rates, name); };
  const double step_ms = 1e3 * static_cast<double>(batch) / rate_of(rates, real);
  const auto stall = [&](const char* name, double longer, double shorter, const char* what) {
    const double share = 100 * std::max(0.0, longer - shorter) / step_ms;
    std::printf("  %-9s %6.1f %% of a step's %.1f ms: %s\n", name, share, step_ms, what);
    run.result(std::string("stall_") + name, share, "%");
    facts.emplace_back(std::string(name) + " stall", mr::detail::percent(share / 100) + " of a step: " + what);
  };
  std::printf("\nstalls\n");
  stall("transfer", ms("h2d+step"), ms("step-only"), "duration of a blocking copy (h2d+step - step-only)");
  stall("prep", ms("ram"), ms("ready"), "decoding and transforming (ram - ready)");
  stall("fetch", step_ms, ms("ram"), ("reading and unpacking (" + real + " - ram)").c_str());
  return facts;
}

/// Returns the first setting whose rate is within 3 % of the best rate.
template <class Setting>
Setting knee_of(const std::vector<std::pair<Setting, double>>& points) {
  double best = 0;
  for (const auto& [setting, rate] : points) best = std::max(best, rate);
  for (const auto& [setting, rate] : points)
    if (rate >= 0.97 * best) return setting;
  return points.back().first;
}

struct sweeps {
  std::vector<std::pair<unsigned, double>> workers;
  std::vector<std::pair<std::size_t, double>> depth;
};

sweeps sweep(bench::harness& run, bench::bound_runs& runs, const bench::bound_settings& s) {
  sweeps rates_by_setting;
  std::vector<unsigned> workers;
  for (unsigned w = 1; w <= std::max(s.workers, mr::usable_cores()); w = w < 4 ? w + 1 : w * 3 / 2)
    workers.push_back(w);
  std::map<unsigned, std::vector<double>> by_workers;
  std::map<std::size_t, std::vector<double>> by_depth;
  for (unsigned round = 0; round < std::min(s.rounds, 2U); ++round) {
    for (const unsigned w : workers) by_workers[w].push_back(runs.run_with(w, s.prefetch).samples_per_s);
    for (const std::size_t depth : {1U, 2U, 4U, 8U})
      by_depth[depth].push_back(runs.run_with(s.workers, depth).samples_per_s);
  }
  std::printf("\nsamples per second over workers (prefetch %zu)\n", s.prefetch);
  for (const auto& [w, all] : by_workers) {
    std::printf("  %3u  %s\n", w, bench::spread(all, "%.0f").c_str());
    run.result("workers_" + std::to_string(w), bench::median(all), "samples/s");
    rates_by_setting.workers.emplace_back(w, bench::median(all));
  }
  std::printf("samples per second over prefetched batches (%u workers)\n", s.workers);
  for (const auto& [depth, all] : by_depth) {
    std::printf("  %3zu  %s\n", depth, bench::spread(all, "%.0f").c_str());
    run.result("prefetch_" + std::to_string(depth), bench::median(all), "samples/s");
    rates_by_setting.depth.emplace_back(depth, bench::median(all));
  }
  return rates_by_setting;
}

int measure(int argc, char** argv) {
  command_line args(argc, argv, "usage: bound [--data SHARDS] [--step SECONDS] ...: bench/parts/bound_settings.hpp");
  std::vector<char*> common{argv[0]};   // of all benchmarks
  const std::string json = args.text("--json", "");
  std::string words[] = {"--quick", "--json", json};
  const bool quick = args.flag("--quick");
  if (quick) common.push_back(words[0].data());
  if (!json.empty()) common.insert(common.end(), {words[1].data(), words[2].data()});
  const bench::bound_settings s = bench::read_bound_settings(args, quick);
  if (!args.rest().empty()) args.refuse("all arguments have a name");

  const auto chip = find_accelerator();
  bench::harness run(static_cast<int>(common.size()), common.data(), "bound", {{"accelerator", chip->description()}});
  bench::bound_runs runs(s, bench::find_data(s.data), *chip);
  const std::string real = s.storage.cold ? "cold" : "warm";
  std::printf("data: %zu shards, %.0f kB a sample; step: %s, %.2f ms at batch %zu; %u workers, %u I/O threads\n",
              runs.names().size(), 1e-3 * runs.sample_bytes(), s.step_name.c_str(), 1e3 * s.step_s, s.batch, s.workers,
              s.io_threads);

  all_rates rates;
  std::map<std::string, bench::outcome> last;
  std::vector<double> raw_speed;
  for (unsigned round = 0; round < s.rounds; ++round) {
    raw_speed.push_back(1e-6 * bench::raw_read_speed(runs.names(), runs.used(), s.io_threads, s.seconds / 2));
    for (const std::string& name : bench::bound_runs::all()) {
      bench::outcome o = runs.run(name);
      rates[name].push_back(o.samples_per_s);
      last[name] = std::move(o);
    }
  }
  std::printf("\nablations (samples per second)\n");
  for (const std::string& name : bench::bound_runs::all()) {
    std::printf("  %-13s %s\n", name.c_str(), bench::spread(rates[name], "%.0f").c_str());
    run.result(plain(name), rate_of(rates, name), "samples/s");
  }
  std::printf("  reading alone %s MB/s\n", bench::spread(raw_speed, "%.0f").c_str());
  const std::vector<bench::fact> stalls = print_stalls(run, rates, real, s.batch);

  const double copy_s = static_cast<double>(s.batch) *
                        (1 / rate_of(rates, "h2d+step") - 1 / rate_of(rates, "step-only"));
  const bench::ablation_verdict ablated = bench::judge_ablations(
      {.step = rate_of(rates, "step-only"),
       .transfer = static_cast<double>(s.batch) / std::max(copy_s, 1e-9),
       .cpu = rate_of(rates, "cpu-only"),
       .io = rate_of(rates, "io-only"),
       .raw_read = 1e6 * bench::median(raw_speed) / runs.sample_bytes()});
  bench::outcome& live = last[real];
  mr::run_report report = mr::report_of(live.statistics, std::move(live.events));
  const bool agreed = bench::agree(ablated, report.conclusion);
  std::printf("\n");
  run.finding("by the ablations", ablated.sentence());
  run.finding("by the live run", report.conclusion.sentence() + (agreed ? "" : "   <- they differ"));
  std::printf("\n%s", mr::text_report(report).c_str());
  run.result("verdicts_agree", agreed ? 1 : 0, "of_1");

  const sweeps rates_by_setting = sweep(run, runs, s);
  const unsigned workers = knee_of(rates_by_setting.workers);
  const std::size_t depth = knee_of(rates_by_setting.depth);
  const std::string use = ".threads = " + std::to_string(workers) + ", prefetch({.batches = " + std::to_string(depth) +
                          "})";
  run.finding("use", use);
  run.result("knee_workers", workers, "workers");
  run.result("knee_prefetch", static_cast<double>(depth), "batches");
  if (!s.html.empty()) {
    report.scaling.clear();
    for (const auto& [w, rate] : rates_by_setting.workers) report.scaling.push_back({w, rate, true});
    report.title = "millrace bench bound";
    report.origin = mr::run_origin::now();
    report.facts.push_back({"ablations", ablated.sentence()});
    report.facts.insert(report.facts.end(), stalls.begin(), stalls.end());
    for (const std::string& name : bench::bound_runs::all())
      report.facts.push_back({name, bench::spread(rates[name], "%.0f") + " samples/s"});
    for (const auto& [prefetched, rate] : rates_by_setting.depth)
      report.facts.push_back({"prefetch " + std::to_string(prefetched), mr::detail::grouped(rate) + " samples/s"});
    report.facts.push_back({"use", use});
    std::ofstream file(s.html);
    file << mr::html_report(report);
    if (!file.flush())
      throw mr::io_error("cannot write the page " + mr::printable(s.html), "Check the folder and its permissions");
  }
  return run.finish();
}

}   // namespace

int main(int argc, char** argv) {
  return bench::run_guarded([&] { return measure(argc, argv); });
}
