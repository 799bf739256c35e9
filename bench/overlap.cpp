// overlap: how long an accelerator idles when it waits for its data, and when loading goes on beside the step
//
// Three loops over the same pictures and the same steps. "step alone" launches steps on what is there already. The
// synchronous loop is the usual first one: decode a batch on the trainer's thread, copy it, launch the step, read the
// loss. "overlapped" is a session that delivers to the accelerator, and a trainer that waits for nothing. Swept is the
// step's length, from a quarter of the time that loading a batch takes to four times as much. Idle is what the
// accelerator's own clock says about the time between steps.
#include "harness.hpp"
#include "parts/emulated_accelerator.hpp"
#ifdef MILLRACE_CUDA
#include "parts/gpu_accelerator.hpp"
#endif

#include "../examples/shape_shards.hpp"

#include <millrace/millrace.hpp>

#include <map>
#include <memory>

namespace mr = millrace;

namespace {

struct example {
  mr::picture pixels;
  std::int32_t label;
};

constexpr std::size_t side = 64, batch_rows = 64;
// What the rings hold at the start must not flatter: it is used up, or refilled, before the clock runs.
constexpr std::size_t warm_up = 12;

example prepare(const mr::record& r, mr::draw& random) {
  return {mr::jpeg(r["jpg"]).random_resized_crop(side, random).random_flip(random),
          mr::integer<std::int32_t>(r["cls"])};
}

struct bench_setting {
  bench::accelerator& chip;
  std::string shards;
  std::size_t batches;   // counted, after the warm-up
};

auto pictures(const bench_setting& s) {
  return mr::shards(s.shards, {.seed = 7}) | mr::shuffle({.window = 512}) | mr::map(prepare) |
         mr::batch<&example::pixels, &example::label>({.size = batch_rows});
}

auto overlapped_session(const bench_setting& s) {
  return mr::session{pictures(s) | mr::to_device({.device = s.chip.device(), .stream = s.chip.stream()}),
                     {.epochs = mr::endless, .announce = false}};
}

/// Seconds a batch, with nothing to do but wait for it.
double load_period(const bench_setting& s) {
  auto run = overlapped_session(s);
  for (std::size_t i = 0; i < warm_up; ++i) static_cast<void>(run.next());
  const double start = bench::now().wall_s;
  for (std::size_t i = 0; i < s.batches; ++i) static_cast<void>(run.next());
  return (bench::now().wall_s - start) / static_cast<double>(s.batches);
}

bench::occupancy run_alone(const bench_setting& s, double step_s) {
  static_cast<void>(s.chip.take_steps());
  for (std::size_t i = 0; i < 8; ++i) s.chip.launch_step(step_s);
  s.chip.wait();
  return bench::occupancy_of(s.chip.take_steps(), 1);
}

bench::occupancy run_synchronous(const bench_setting& s, double step_s) {
  mr::session run{pictures(s) | mr::to_device({.device = mr::host_device()}),
                  {.epochs = mr::endless, .threads = 0, .announce = false}};
  static_cast<void>(s.chip.take_steps());
  for (std::size_t i = 0; i < 2 + s.batches; ++i) {
    const auto b = run.next();
    const auto pixels = b.get<&example::pixels>();
    s.chip.copy_and_wait(pixels.data, pixels.size());
    s.chip.launch_step(step_s);
    s.chip.wait();   // for the loss
  }
  return bench::occupancy_of(s.chip.take_steps(), 2);
}

bench::occupancy run_overlapped(const bench_setting& s, double step_s) {
  static_cast<void>(s.chip.take_steps());
  {
    auto run = overlapped_session(s);
    for (std::size_t i = 0; i < warm_up + s.batches; ++i) {
      const auto b = run.next();
      s.chip.launch_step(step_s);
    }
    s.chip.wait();
  }
  return bench::occupancy_of(s.chip.take_steps(), warm_up);
}

struct series {
  std::vector<double> alone_rate, sync_rate, sync_idle, rate, idle, speed_up, of_ideal, load_ms, step_ms;
};

void measure_round(const bench_setting& s, double ratio, series& into) {
  const double load_s = load_period(s), wanted_s = load_s / ratio;
  const bench::occupancy alone = run_alone(s, wanted_s), sync = run_synchronous(s, wanted_s),
                         overlapped = run_overlapped(s, wanted_s);
  const double load_after_s = load_period(s);   // the machine's load changes meanwhile
  const double ideal_s = std::max((load_s + load_after_s) / 2, alone.period_s());
  constexpr auto rows = static_cast<double>(batch_rows);
  into.load_ms.push_back(1e3 * (load_s + load_after_s) / 2);
  into.step_ms.push_back(1e3 * alone.period_s());
  into.alone_rate.push_back(rows / alone.period_s());
  into.sync_rate.push_back(rows / sync.period_s());
  into.sync_idle.push_back(100 * sync.idle_share());
  into.rate.push_back(rows / overlapped.period_s());
  into.idle.push_back(100 * overlapped.idle_share());
  into.speed_up.push_back(sync.period_s() / overlapped.period_s());
  into.of_ideal.push_back(100 * ideal_s / overlapped.period_s());
}

void report(bench::harness& run, double ratio, const series& all) {
  std::printf("\nload / step = %g: load %s ms, step %s ms a batch of %zu\n", ratio, bench::spread(all.load_ms).c_str(),
              bench::spread(all.step_ms).c_str(), batch_rows);
  std::printf("  step alone   %s images/s\n", bench::spread(all.alone_rate, "%.0f").c_str());
  std::printf("  synchronous  %s images/s, idle %s %%\n", bench::spread(all.sync_rate, "%.0f").c_str(),
              bench::spread(all.sync_idle, "%.1f").c_str());
  std::printf("  overlapped   %s images/s, idle %s %%\n", bench::spread(all.rate, "%.0f").c_str(),
              bench::spread(all.idle, "%.1f").c_str());
  char name[32];
  std::snprintf(name, sizeof name, "_load_%g", ratio);
  run.result("synchronous_idle" + std::string(name), bench::median(all.sync_idle), "%");
  run.result("overlapped_idle" + std::string(name), bench::median(all.idle), "%",
             ratio < 1 ? bench::at_most(2) : bench::goal{});
  run.result("speed_up" + std::string(name), bench::median(all.speed_up), "x");
  run.result("overlapped_of_ideal" + std::string(name), bench::median(all.of_ideal), "%", bench::at_least(90));
}

std::unique_ptr<bench::accelerator> find_accelerator() {
#ifdef MILLRACE_CUDA
  if (auto gpu = bench::gpu_accelerator::find()) return gpu;
#endif
  return std::make_unique<bench::emulated_accelerator>();
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_guarded([&] {
    const auto chip = find_accelerator();
    bench::harness run(argc, argv, "overlap", {{"accelerator", chip->description()}});
    const auto data = make_shape_shards({.folder = bench::data_folder() + "/shapes"});
    const bench_setting s{.chip = *chip, .shards = data.train, .batches = run.quick() ? std::size_t{24} : 64};
    const std::vector<double> ratios{0.25, 0.5, 1, 2, 4};
    std::map<double, series> all;
    for (int round = 0; round < (run.quick() ? 2 : 5); ++round)
      for (const double ratio : ratios) measure_round(s, ratio, all[ratio]);
    for (const double ratio : ratios) report(run, ratio, all[ratio]);
    return run.finish();
  });
}
