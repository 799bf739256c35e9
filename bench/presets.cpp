// presets: well-known claims about loading data, each shown on this machine with its own verdict
//
//   sh bench/run.sh presets [--only overlap|parallel|accumulation|statistics] [--quick]
//
// The claims: "83 % of the time idle without overlap, four to five times faster with it"; complete batches by each
// worker, as in PyTorch, against one batch by all workers; gradient accumulation at a constant global batch; the cost
// of run statistics. Loads wait or compute for a given time (preset_load), so that the results show only how
// a loop schedules them; `bench overlap` uses real images, and a GPU if there is one.
#include "harness.hpp"
#include "parts/emulated_accelerator.hpp"
#include "parts/statistics_cost.hpp"

#include <millrace/base/clock.hpp>
#include <millrace/millrace.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <thread>

namespace {

/// A row of that many bytes that begins with its number.
struct numbered_rows {
  using element = std::uint8_t;
  std::int64_t first = 0;
  std::size_t count = 1, bytes = 3'072;

  std::array<std::size_t, 2> shape() const { return {count, bytes}; }
  void render(std::span<element> rows) const {
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t number = first + static_cast<std::int64_t>(i);
      const auto head = reinterpret_cast<const std::uint8_t*>(&number);
      std::copy_n(head, sizeof number, rows.begin() + static_cast<std::ptrdiff_t>(i * bytes));
    }
  }
};

struct loaded {
  numbered_rows row;
};

/// The loading of a sample, of a chosen length: a wait, as for storage, or computing, as for decoding.
struct preset_load {
  double sample_s = 0;
  bool computes = false;
  std::size_t samples = 1;   // of an item: a complete batch if each worker builds batches

  void one() const {
    const auto ns = static_cast<std::int64_t>(1e9 * sample_s);
    if (!computes) return std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
    // CPU time, so that the time of neighbors on the machine does not count.
    const std::int64_t start = millrace::detail::read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    while (millrace::detail::read_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start < ns) {}
  }
  loaded operator()(std::int64_t number) const {
    for (std::size_t i = 0; i < samples; ++i) one();
    return {{.first = number * static_cast<std::int64_t>(samples), .count = samples}};
  }
};

/// 0, 1, 2 ...
struct endless_numbers {
  using item = std::int64_t;
  struct reader {
    std::int64_t at;
    std::optional<item> next() { return at++; }
  };
  static std::size_t shards() { return 1; }
  static reader open(std::size_t, std::uint64_t) { return {0}; }
};

}   // namespace

namespace mr = millrace;

namespace {

using bench::median;

constexpr std::size_t row_bytes = 3'072;

auto flow_of(const preset_load& load, std::size_t rows, std::size_t prefetch, const mr::device& device) {
  return mr::from(endless_numbers{}) | mr::map(load) | mr::batch<&loaded::row>({.size = rows}) |
         mr::prefetch({.batches = prefetch}) | mr::to_device({.device = device});
}
mr::session_options options_of(unsigned workers) {
  return {.epochs = mr::endless, .threads = static_cast<int>(workers), .notice = mr::quiet};
}

// ---- overlap ----

struct loop_setting {
  preset_load load;
  double step_s = 0;
  std::size_t rows = 16, batches = 40;
  unsigned workers = 1;
};
constexpr std::size_t warm_up = 8;

/// Loads a batch, copies it, launches the step and waits for its loss.
bench::occupancy synchronous(const loop_setting& s) {
  bench::emulated_accelerator chip;
  std::vector<std::uint8_t> batch(s.rows * row_bytes);
  for (std::size_t b = 0; b < s.batches; ++b) {
    for (std::size_t i = 0; i < s.rows; ++i) s.load.one();
    chip.copy_and_wait(batch.data(), batch.size());
    chip.launch_step(s.step_s);
    chip.wait();
  }
  return bench::occupancy_of(chip.take_steps(), warm_up);
}

bench::occupancy overlapped(const loop_setting& s) {
  bench::emulated_accelerator chip;
  mr::session run{flow_of(s.load, s.rows, 3, chip.device()), options_of(s.workers)};
  std::size_t batches = 0;
  for (auto& b : run) {
    static_cast<void>(b);
    chip.launch_step(s.step_s);
    if (++batches == 2 * s.batches) break;
  }
  chip.wait();
  return bench::occupancy_of(chip.take_steps(), warm_up);
}

void measure_overlap(bench::harness& run) {
  constexpr double step_s = 20e-3;
  for (const bool computes : {false, true}) {
    const unsigned workers = computes ? mr::usable_cores() : 8;
    const char* const kind = computes ? "computing" : "waiting";
    std::printf("\noverlap, loading is %s, %u workers, steps of %.0f ms on an emulated accelerator\n", kind, workers,
                1e3 * step_s);
    for (const double ratio : {1.0, 2.0, 4.9}) {
      std::vector<double> idle, idle_overlapped, faster;
      for (int round = 0; round < (run.quick() ? 2 : 5); ++round) {
        loop_setting s{.load = {.computes = computes}, .step_s = step_s, .workers = workers};
        s.load.sample_s = ratio * step_s / static_cast<double>(s.rows);
        if (run.quick()) s.batches = 20;
        const bench::occupancy before = synchronous(s), after = overlapped(s);
        idle.push_back(100 * before.idle_share());
        idle_overlapped.push_back(100 * after.idle_share());
        faster.push_back(before.period_s() / after.period_s());
      }
      std::printf("  load / step %.1f (measured: %.1f): idle %s %%, overlapped %s %%, %s times as fast\n", ratio,
                  median(idle) / (100 - median(idle)), bench::spread(idle, "%.0f").c_str(),
                  bench::spread(idle_overlapped, "%.0f").c_str(), bench::spread(faster, "%.1f").c_str());
      char name[64];
      std::snprintf(name, sizeof name, "_%s_load_%g", kind, ratio);
      run.result("synchronous_idle" + std::string(name), median(idle), "%");
      run.result("overlapped_idle" + std::string(name), median(idle_overlapped), "%");
      run.result("speed_up" + std::string(name), median(faster), "x");
      if (ratio == 4.9)
        std::printf("  verdict: a loop is 83 %% idle if loading lasts 4.9 steps; here %.0f %%. Four to five "
                    "times faster: %s, %.1f times with %u workers\n",
                    median(idle), median(faster) >= 4 ? "yes" : "no", median(faster), workers);
    }
  }
}

// ---- parallel ----

struct schedule {
  double first_batch_ms = 0, samples_per_s = 0, slots_mb = 0;
};

/// `batch_per_worker`: each worker builds its own batch, with two per worker in store, as in PyTorch's loader.
schedule run_schedule(preset_load load, unsigned workers, bool batch_per_worker, double seconds) {
  constexpr std::size_t rows = 64;
  if (batch_per_worker) load.samples = rows;
  mr::session run{flow_of(load, batch_per_worker ? 1 : rows, batch_per_worker ? 2 * workers : 3, mr::host_device()),
                  options_of(workers)};
  std::size_t batches = 0;
  double start = 0, spent = 0;
  for (auto& b : run) {
    static_cast<void>(b);
    const double now = bench::now().wall_s;
    if (start == 0) start = now;
    else ++batches;
    spent = now - start;
    if (spent > seconds && batches >= 2 * workers) break;
  }
  const mr::run_stats s = run.stats();
  return {.first_batch_ms = 1e-6 * static_cast<double>(s.first_batch_ns),
          .samples_per_s = static_cast<double>(batches * rows) / spent,
          .slots_mb = 1e-6 * static_cast<double>(s.host_slots * s.slot_bytes)};
}

void measure_parallel(bench::harness& run) {
  for (const bool computes : {false, true}) {
    std::vector<unsigned> workers{1, 2, 4, 8};
    if (computes) std::erase_if(workers, [](unsigned w) { return w > mr::usable_cores(); });
    const char* const kind = computes ? "computing" : "waiting";
    std::printf("\nbatches of 64 samples, each 1 ms of %s: one batch per worker | all workers on one batch\n", kind);
    double first_ratio = 0, memory_ratio = 0, speed_ratio = 0;
    for (const unsigned w : workers) {
      std::vector<double> first[2], speed[2], memory[2];
      for (int round = 0; round < (run.quick() ? 2 : 5); ++round)
        for (const bool batch_per_worker : {true, false}) {
          const schedule s = run_schedule({.sample_s = 1e-3, .computes = computes}, w, batch_per_worker,
                                          run.quick() ? 0.5 : 1.5);
          first[batch_per_worker].push_back(s.first_batch_ms);
          speed[batch_per_worker].push_back(s.samples_per_s);
          memory[batch_per_worker].push_back(s.slots_mb);
        }
      std::printf("  %u workers: first batch %.0f | %.0f ms; %.0f | %.0f samples/s; slots %.2f | %.2f MB\n", w,
                  median(first[1]), median(first[0]), median(speed[1]), median(speed[0]), median(memory[1]),
                  median(memory[0]));
      first_ratio = median(first[1]) / median(first[0]);
      memory_ratio = median(memory[1]) / median(memory[0]);
      speed_ratio = median(speed[0]) / median(speed[1]);
      const std::string name = std::string("_") + kind + "_workers_" + std::to_string(w);
      run.result("first_batch_sooner" + name, first_ratio, "x");
      run.result("slots_smaller" + name, memory_ratio, "x");
      run.result("sample_over_batch_parallel_speed" + name, speed_ratio, "x");
    }
    std::printf("  verdict: with %u workers the first batch arrives %.1f times sooner, slots are %.1f times smaller, "
                "at %.2f times the speed\n",
                workers.back(), first_ratio, memory_ratio, speed_ratio);
  }
}

// ---- accumulation ----

struct accumulation {
  double samples_per_s = 0, idle = 0, slots_mb = 0;
  std::uint64_t order = 0;
};

accumulation run_accumulation(std::size_t micro_batches, std::size_t steps) {
  constexpr std::size_t global = 256;
  constexpr double step_s = 64e-3;
  bench::emulated_accelerator chip;
  const std::size_t rows = global / micro_batches;
  const preset_load load{.sample_s = 1e-3};
  mr::session run{flow_of(load, rows, 3, chip.device()), options_of(8)};
  accumulation a;
  std::size_t micro = 0;
  for (auto& b : run) {
    // The host can read the memory of the emulated accelerator, unlike that of a GPU.
    const auto pixels = b.get<&loaded::row>();
    for (std::size_t i = 0; i < b.size(); ++i) {
      std::int64_t number = 0;
      std::memcpy(&number, pixels.data + i * row_bytes, sizeof number);
      a.order = mr::detail::combine_keys(a.order, static_cast<std::uint64_t>(number));
    }
    chip.launch_step(step_s / static_cast<double>(micro_batches));
    if (++micro == steps * micro_batches) break;
  }
  chip.wait();
  const mr::run_stats s = run.stats();
  const bench::occupancy o = bench::occupancy_of(chip.take_steps(), 4 * micro_batches);
  a.samples_per_s = static_cast<double>(rows) / o.period_s();
  a.idle = 100 * o.idle_share();
  a.slots_mb = 1e-6 * static_cast<double>((s.host_slots + 3) * s.slot_bytes);
  return a;
}

void measure_accumulation(bench::harness& run) {
  std::printf("\na global batch of 256 in 1, 4 and 16 micro-batches; 64 ms of step, 256 ms of waiting, 8 workers\n");
  std::map<std::size_t, std::vector<accumulation>> all;
  for (int round = 0; round < (run.quick() ? 1 : 5); ++round)
    for (const std::size_t a : {1U, 4U, 16U}) all[a].push_back(run_accumulation(a, run.quick() ? 16 : 40));
  std::size_t same_order = 0, runs = 0;
  const double slots_of_one = all[1][0].slots_mb;
  for (const auto& [a, of] : all) {
    std::vector<double> speed, idle;
    for (const accumulation& one : of) {
      speed.push_back(one.samples_per_s);
      idle.push_back(one.idle);
      same_order += one.order == all[1][0].order;
      ++runs;
    }
    std::printf("  %2zu: %s samples/s, accelerator idle %s %%, slots %.2f MB\n", a,
                bench::spread(speed, "%.0f").c_str(), bench::spread(idle, "%.1f").c_str(), of[0].slots_mb);
    const std::string name = "_in_" + std::to_string(a);
    run.result("samples_per_s" + name, median(speed), "samples/s");
    run.result("idle" + name, median(idle), "%");
    run.result("slots_smaller" + name, slots_of_one / of[0].slots_mb, "x");
  }
  run.result("same_order", static_cast<double>(same_order), "of_" + std::to_string(runs),
             bench::at_least(static_cast<double>(runs)));
  std::printf("  verdict: the order is %s; slots shrink with the micro-batches\n",
              same_order == runs ? "the same" : "NOT the same");
}

// ---- statistics ----

void measure_statistics(bench::harness& run) {
  std::printf("\ncost of run statistics: the time of each record times its frequency with small images\n");
  std::vector<double> share, query_share;
  for (int round = 0; round < (run.quick() ? 2 : 5); ++round) {
    const bench::statistics_cost c = bench::measure_statistics_cost(run.quick() ? 1 : 3);
    if (round == 0) std::printf("%s", c.text().c_str());
    share.push_back(100 * c.share());
    query_share.push_back(100 * c.query_share());
  }
  std::printf("  always: %s %% of the CPU time; `statistics()` after every 20 batches: %s %% more\n",
              bench::spread(share, "%.3f").c_str(), bench::spread(query_share, "%.3f").c_str());
  run.result("statistics", median(share) + median(query_share), "%", bench::at_most(1));
}

}   // namespace

int main(int argc, char** argv) {
  return bench::run_guarded([&] {
    bench::harness run(argc, argv, "presets");
    if (run.wants("overlap")) measure_overlap(run);
    if (run.wants("parallel")) measure_parallel(run);
    if (run.wants("accumulation")) measure_accumulation(run);
    if (run.wants("statistics")) measure_statistics(run);
    return run.finish();
  });
}
