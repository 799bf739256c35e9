// order: what the plan costs: per sample, at any number of ranks and any window, and to go on in the middle of an epoch
#include "harness.hpp"

#include <millrace/run/mix_cursor.hpp>

#include <algorithm>
#include <optional>

namespace mr = millrace;

namespace {

/// 1.28 million samples in 1,281 parts.
mr::lane_plan image_net_sized(std::size_t window, std::uint64_t seed) {
  return mr::lane_plan(
      {.seed = seed, .counts = std::vector<std::uint64_t>(1'281, 1'000), .window = window, .global_batch = 192});
}

/// As many samples in four sources of 7 : 5 : 3 : 1, each with the whole window.
mr::mix_plan mix_of_four(std::size_t window) {
  mr::mix_plan_options o{.when_dry = mr::dry::renormalise, .global_batch = 192};
  for (const std::size_t share : {7, 5, 3, 1})
    o.sources.push_back({.weight = static_cast<double>(share),
                         .seed = share,
                         .counts = std::vector<std::uint64_t>(share * 80, 1'000),
                         .window = window});
  return mr::mix_plan(std::move(o));
}

template <class Plan>
double ns_per_sample(const Plan& plan, std::size_t world_size, std::uint64_t epoch) {
  typename Plan::cursor cursor(plan, {.ranks = {.rank = world_size / 2, .world_size = world_size}, .epoch = epoch});
  std::uint64_t samples = 0, sum = 0;
  const bench::clocks before = bench::now();
  while (const auto s = cursor.next()) {
    sum += s->sample.index ^ s->sample.part;
    ++samples;
  }
  const bench::clocks spent = bench::now() - before;
  if (sum == 1) std::printf("never\n");   // the samples are looked at
  return spent.cpu_s * 1e9 / static_cast<double>(samples);
}

void measure_walk(bench::harness& run) {
  std::printf("\na walk through one epoch, 1.28 million samples in 1,281 parts, 48 lanes (CPU ns per sample)\n");
  struct walk {
    std::size_t window, world_size;
    bench::goal target;
    std::vector<double> ns;
  };
  std::vector<walk> walks;
  for (const std::size_t window : {std::size_t{8192}, std::size_t{65'536}, std::size_t{1'048'576}})
    for (const std::size_t world_size : {std::size_t{1}, std::size_t{8}})
      walks.push_back({window, world_size, window <= 65'536 ? bench::at_most(150) : bench::goal{}, {}});
  for (int round = 0; round < (run.quick() ? 3 : 9); ++round)
    for (walk& w : walks)
      w.ns.push_back(ns_per_sample(image_net_sized(w.window, 7), w.world_size, static_cast<std::uint64_t>(round)));
  for (const walk& w : walks) {
    std::printf("  window %7zu, %zu ranks: %s\n", w.window, w.world_size, bench::spread(w.ns).c_str());
    const std::string name = "plan_window_" + std::to_string(w.window) + "_ranks_" + std::to_string(w.world_size);
    run.result(name, bench::median(w.ns), "ns/sample", w.target);
  }
}

void measure_mix(bench::harness& run) {
  const std::size_t window = 8192;
  std::printf("\na walk through one epoch of a mix of four sources, 1.28 million samples (CPU ns per sample of one\n"
              "rank, which passes by those of the others), and of a lane_plan of as many\n");
  const mr::mix_plan mixed = mix_of_four(window);
  const mr::lane_plan alone = image_net_sized(window, 7);
  std::vector<double> one, eight, lanes;
  for (std::uint64_t round = 0; round < (run.quick() ? 3U : 9U); ++round) {
    one.push_back(ns_per_sample(mixed, 1, round));
    eight.push_back(ns_per_sample(mixed, 8, round));
    lanes.push_back(ns_per_sample(alone, 1, round));
  }
  std::printf("  1 rank: %s, 8 ranks: %s, lane_plan: %s\n", bench::spread(one).c_str(), bench::spread(eight).c_str(),
              bench::spread(lanes).c_str());
  run.result("plan_mix_of_4_ranks_1", bench::median(one), "ns/sample", bench::at_most(150));
  run.result("plan_mix_of_4_ranks_8", bench::median(eight), "ns/sample");

  std::printf("\nfrom the counts and a position in the middle of an epoch to the first sample of the mix (CPU ms)\n");
  std::vector<double> first;
  for (std::uint64_t round = 0; round < (run.quick() ? 20U : 200U); ++round) {
    const bench::clocks before = bench::now();
    const mr::mix_plan plan = mix_of_four(window);
    mr::mix_cursor cursor(plan, {.epoch = round, .position = 640'000 / 192 * 192});
    if (cursor.next()->sample.index == ~std::uint64_t{0}) std::printf("never\n");
    first.push_back((bench::now() - before).cpu_s * 1e3);
  }
  std::printf("  %s\n", bench::spread(first).c_str());
  run.result("resume_mix_of_4_first_sample", bench::median(first), "ms", bench::at_most(10));
}

void measure_resume(bench::harness& run) {
  std::printf("\nfrom the counts and a position in the middle of an epoch to its first sample, and to the end of its\n"
              "first batch of 192 (CPU ms)\n");
  for (const std::size_t window : {std::size_t{8192}, std::size_t{65'536}, std::size_t{1'048'576}}) {
    std::vector<double> first, batch;
    for (std::uint64_t round = 0; round < (run.quick() ? 20U : 200U); ++round) {
      const bench::clocks before = bench::now();
      const mr::lane_plan plan = image_net_sized(window, round);
      mr::lane_cursor cursor(plan, {.epoch = round, .position = 640'000 / 192 * 192});
      std::uint64_t sum = cursor.next()->sample.index;
      first.push_back((bench::now() - before).cpu_s * 1e3);
      for (int i = 1; i < 192; ++i) sum += cursor.next()->sample.index;
      batch.push_back((bench::now() - before).cpu_s * 1e3);
      if (sum == 1) std::printf("never\n");
    }
    std::printf("  window %7zu: %s, %s\n", window, bench::spread(first).c_str(), bench::spread(batch).c_str());
    const std::string name = "resume_window_" + std::to_string(window);
    run.result(name + "_first_sample", bench::median(first), "ms", bench::at_most(10));
    const bench::goal target = window <= 65'536 ? bench::at_most(10) : bench::goal{};
    run.result(name + "_first_batch", bench::median(batch), "ms", target);
  }
}

}  // namespace

int main(int argc, char** argv) {
  bench::harness run(argc, argv, "order");
  return bench::run_guarded([&] {
    if (run.wants("walk")) measure_walk(run);
    if (run.wants("mix")) measure_mix(run);
    if (run.wants("resume")) measure_resume(run);
    return run.finish();
  });
}
