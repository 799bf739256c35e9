// overlap: idle time of an accelerator that waits for its data, and of one whose data are loaded during the step
//
// Two training loops, those of examples/cuda_trainer_loops.hpp, process the same images with the same steps. "before"
// decodes a batch on the trainer's thread, copies it, launches the step, and reads the loss. "after" is the loop with
// Millrace, which waits for nothing. "step alone" launches steps on data that are already present. The step's length
// varies from a quarter of a batch's loading time to four times as much. Idle time is the time between steps by the
// accelerator's own clock. Without a GPU, the accelerator is emulated, unless --only gpu is passed.
#include "harness.hpp"
#include "parts/emulated_accelerator.hpp"
#ifdef MILLRACE_CUDA
#include "parts/gpu_accelerator.hpp"
#endif

#include "../examples/cuda_trainer_loops.hpp"
#include "../examples/shapes.hpp"

#include <tbb/parallel_for.h>

#include <map>
#include <memory>

namespace mr = millrace;

namespace {

constexpr std::size_t batch_rows = trainer_settings::rows;
// Batches that are ready at the start must not count: they are consumed, or the ring is full again, before the clock
// starts.
constexpr std::size_t warm_up = 12;

/// The trainer's network, with a step of a chosen length instead of its kernels.
struct stepped_network {
  bench::accelerator& chip;
  double step_s;

  mr::stream_view stream() const { return chip.stream(); }
  void upload(const std::uint8_t* pixels, const std::int32_t* labels) {
    chip.copy_and_wait(pixels, batch_rows * trainer_settings::row_pixels);
    chip.copy_and_wait(labels, batch_rows * sizeof *labels);
  }
  static std::nullptr_t uploaded_pixels() { return {}; }
  static std::nullptr_t uploaded_labels() { return {}; }
  void step(const auto&, const auto&, mr::stream_view) { chip.launch_step(step_s); }
  float read_loss() {
    chip.wait();
    return 0;
  }
};

/// A network that computes nothing and records the time of each step.
struct clocked_network {
  bench::accelerator& chip;
  std::vector<double> at_s{};

  mr::stream_view stream() const { return chip.stream(); }
  void step(const auto&, const auto&, mr::stream_view) { at_s.push_back(bench::now().wall_s); }
  static float read_loss() { return 0; }
};

struct bench_setting {
  bench::accelerator& chip;
  const std::vector<trainer_sample>& samples;   // of an epoch: the warm-up, or more
  std::size_t epochs;

  trainer_settings loop() const { return {.epochs = epochs, .device = chip.device()}; }
};

/// Returns the seconds per batch of a trainer that only waits for batches.
double load_period(const bench_setting& s) {
  clocked_network net{s.chip};
  train_after(net, s.samples, s.loop());
  return (net.at_s.back() - net.at_s[warm_up]) / static_cast<double>(net.at_s.size() - 1 - warm_up);
}

bench::occupancy run_alone(const bench_setting& s, double step_s) {
  static_cast<void>(s.chip.take_steps());
  for (std::size_t i = 0; i < 8; ++i) s.chip.launch_step(step_s);
  s.chip.wait();
  return bench::occupancy_of(s.chip.take_steps(), 1);
}

template <class Train>
bench::occupancy run_loop(const Train& train, const bench_setting& s, double step_s) {
  static_cast<void>(s.chip.take_steps());
  stepped_network net{s.chip, step_s};
  train(net, s.samples, s.loop());
  return bench::occupancy_of(s.chip.take_steps(), warm_up);
}

struct series {
  std::vector<double> alone_rate, sync_rate, sync_idle, rate, idle, speed_up, of_ideal, load_ms, step_ms;
};

void measure_round(const bench_setting& s, double ratio, series& into) {
  const double load_s = load_period(s), wanted_s = load_s / ratio;
  const bench::occupancy alone = run_alone(s, wanted_s), sync = run_loop(train_before<stepped_network>, s, wanted_s),
                         overlapped = run_loop(train_after<stepped_network>, s, wanted_s);
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
  std::printf("  before       %s images/s, idle %s %%\n", bench::spread(all.sync_rate, "%.0f").c_str(),
              bench::spread(all.sync_idle, "%.1f").c_str());
  std::printf("  after        %s images/s, idle %s %%\n", bench::spread(all.rate, "%.0f").c_str(),
              bench::spread(all.idle, "%.1f").c_str());
  char name[32];
  std::snprintf(name, sizeof name, "_load_%g", ratio);
  run.result("synchronous_idle" + std::string(name), bench::median(all.sync_idle), "%");
  run.result("overlapped_idle" + std::string(name), bench::median(all.idle), "%",
             ratio < 1 ? bench::at_most(2) : bench::goal{});
  run.result("speed_up" + std::string(name), bench::median(all.speed_up), "x");
  run.result("overlapped_of_ideal" + std::string(name), bench::median(all.of_ideal), "%", bench::at_least(90));
}

std::unique_ptr<bench::accelerator> find_gpu() {
#ifdef MILLRACE_CUDA
  return bench::gpu_accelerator::find();
#else
  return nullptr;
#endif
}

}   // namespace

int main(int argc, char** argv) {
  return bench::run_guarded([&] {
    std::unique_ptr<bench::accelerator> chip = find_gpu();
    const bool has_gpu = chip != nullptr;
    if (!has_gpu) chip = std::make_unique<bench::emulated_accelerator>();
    bench::harness run(argc, argv, "overlap", {{"accelerator", chip->description()}});
    if (!has_gpu && !run.wants("emulated")) return run.nothing_measured("no GPU");
    std::vector<trainer_sample> samples(24 * batch_rows);
    tbb::parallel_for(std::size_t{0}, samples.size(), [&](std::size_t i) {
      auto shape = make_shape({.seed = 1, .index = i});
      samples[i] = {.file = std::move(shape.jpeg), .label = shape.label};
    });
    const bench_setting s{.chip = *chip, .samples = samples, .epochs = run.quick() ? 2U : 3U};
    const std::vector<double> ratios{0.25, 0.5, 1, 2, 4};
    std::map<double, series> all;
    for (int round = 0; round < (run.quick() ? 2 : 5); ++round)
      for (const double ratio : ratios) measure_round(s, ratio, all[ratio]);
    for (const double ratio : ratios) report(run, ratio, all[ratio]);
    return run.finish();
  });
}
