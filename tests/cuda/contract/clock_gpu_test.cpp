// Timings on a machine with a GPU: no call of the step waits, and metrics cost almost nothing.
#include "gpu_parts.hpp"
#include "recorded_batches.hpp"

#include <millrace/train/metrics.hpp>

#include <algorithm>
#include <chrono>
#include <string>

using namespace contract;

namespace {

using clock_type = std::chrono::steady_clock;

double milliseconds_since(clock_type::time_point start) {
  return std::chrono::duration<double, std::milli>(clock_type::now() - start).count();
}

class forgetful_sink final : public mr::sink {
 public:
  const char* name() const noexcept override { return "forgetful"; }
  void write(const mr::row&) override {}
};

mr::tensor_view<const float, 1> losses_in(const device_memory& memory) {
  return {.data = reinterpret_cast<const float*>(memory.get()), .shape = {rows}, .memory = mr::memory_kind::device};
}

}  // namespace

TEST_CASE("clock: after a kernel of 200 ms, next, add, maybe_log and release return within 5 ms in total") {
  start();
  const contract::stream step;
  const device_memory losses = make_device(rows * sizeof(float));
  ok(cudaMemset(losses.get(), 0, rows * sizeof(float)));
  mr::log out({}, forgetful_sink{});
  mr::metrics metrics({.every = 1, .device = make_sums()});
  auto loss = metrics.mean("loss");
  mr::session run{flow(400, {.device = mr::cuda_device(0), .stream = step, .slots = 3}), quiet(2)};
  spin(0.01, step);   // the first launch of a kernel loads it
  double worst_ms = 0;
  for (int i = 0; i < 12; ++i) {
    // During a long step there are as many batches as slots in the ring. This requests three.
    if (i % 4 == 0) step.synchronize();
    contract::pause();   // the next batch is ready, so that only the calls are timed
    const auto before = clock_type::now();
    {
      auto b = run.next();
      if (i % 4 == 1) spin(200, step);
      loss.add(losses_in(losses), {.stream = b.stream()});
      metrics.maybe_log(static_cast<std::uint64_t>(i), out);
    }
    if (i > 0) worst_ms = std::max(worst_ms, milliseconds_since(before));
  }
  MESSAGE("the longest needed ", worst_ms, " ms");
  if (!std::getenv("MILLRACE_SLOW_TOOLS")) CHECK(worst_ms < 5);
  step.synchronize();
}

TEST_CASE("clock: five metrics at every step and a row at every tenth cost under 1 % of a step of 2 ms") {
  start();
  const contract::stream step;
  const device_memory losses = make_device(rows * sizeof(float));
  ok(cudaMemset(losses.get(), 0, rows * sizeof(float)));
  mr::log out({}, forgetful_sink{});
  mr::metrics metrics({.every = 10, .device = make_sums()});
  std::vector<mr::mean_metric> means;
  for (int i = 0; i < 5; ++i) means.push_back(metrics.mean("m" + std::to_string(i)));
  const auto time_of = [&](bool with_metrics) {
    step.synchronize();
    const auto before = clock_type::now();
    for (std::uint64_t i = 0; i < 200; ++i) {
      spin(2, step);
      if (!with_metrics) continue;
      metrics.add_together([&] {
        for (auto& mean : means) mean.add(losses_in(losses), {.stream = step});
      });
      metrics.maybe_log(i, out);
    }
    step.synchronize();
    return milliseconds_since(before);
  };
  std::vector<double> ratios;
  time_of(true);
  for (int i = 0; i < 7; ++i) {
    const double without = time_of(false);
    ratios.push_back(time_of(true) / without);
  }
  std::sort(ratios.begin(), ratios.end());
  MESSAGE("with over without: ", ratios[3], " (", ratios.front(), " to ", ratios.back(), ")");
  CHECK(ratios[3] < 1.01);
}

TEST_CASE("clock: mixing the images of a batch of 256 uses less than 0.2 ms of the stream") {
  start();
  constexpr std::size_t pictures = 256, side = 224;
  const contract::stream step;
  const device_memory pixels = make_device(pictures * side * side * 3);
  ok(cudaMemset(pixels.get(), 7, pictures * side * side * 3));
  std::vector<mr::row_mix> mixes(pictures);
  for (std::size_t i = 0; i < pictures; ++i) {
    mixes[i].partner = static_cast<std::int32_t>(i ^ 1);
    if (i / 2 % 2 == 0) mixes[i].weight = 45'874;
    else mixes[i].left = 30, mixes[i].top = 40, mixes[i].right = 190, mixes[i].bottom = 200;
  }
  const device_memory there = make_device(pictures * sizeof(mr::row_mix));
  ok(cudaMemcpy(there.get(), mixes.data(), pictures * sizeof(mr::row_mix), cudaMemcpyHostToDevice));
  ok(cudaDeviceSynchronize());
  const auto mix = [&] {
    mix_pictures({.data = pixels.get(), .shape = {pictures, side, side, 3}, .memory = mr::memory_kind::device},
                 {.data = reinterpret_cast<const mr::row_mix*>(there.get()), .shape = {pictures},
                  .memory = mr::memory_kind::device}, {static_cast<cudaStream_t>(step)});
  };
  mix();   // the first launch of a kernel loads it
  step.synchronize();
  constexpr int calls = 50;
  const auto before = clock_type::now();
  for (int i = 0; i < calls; ++i) mix();
  step.synchronize();
  const double each_ms = milliseconds_since(before) / calls;
  MESSAGE("one needed ", each_ms, " ms");
  CHECK(each_ms < 0.2);
}
