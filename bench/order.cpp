// order: cost of the plan per sample, by ranks and window, and to resume; the wait for the first batch of an epoch;
// mixes of many sources, and joins, compared with one source
#include "harness.hpp"

#include <millrace/io/tar/write/shard_writer.hpp>
#include <millrace/item/tensor/array.hpp>
#include <millrace/order/mix_plan.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/join.hpp>
#include <millrace/sources/mix.hpp>
#include <millrace/sources/shards.hpp>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <time.h>

namespace mr = millrace;

namespace {

/// 1.28 million samples in 1,281 parts.
mr::detail::exact_order image_net_sized(std::size_t window, std::uint64_t seed) {
  return mr::detail::exact_order({.seed = seed,
                                  .counts = std::vector<std::uint64_t>(1'281, 1'000),
                                  .window = window,
                                  .lanes = 48,
                                  .global_batch = 192});
}

/// The same number of samples in four sources of 7 : 5 : 3 : 1, each with the full window.
mr::detail::mix_plan mix_of_four(std::size_t window) {
  mr::detail::mix_plan_options o{.on_exhausted = mr::exhausted::reweight, .lanes = 48, .global_batch = 192};
  for (const std::size_t share : {7, 5, 3, 1})
    o.sources.push_back({.weight = static_cast<double>(share),
                         .seed = share,
                         .counts = std::vector<std::uint64_t>(share * 80, 1'000),
                         .window = window});
  return mr::detail::mix_plan(std::move(o));
}

template <class Plan>
double ns_per_sample(const Plan& plan, std::size_t world_size, std::uint64_t epoch) {
  typename Plan::cursor cursor(plan, {.world = {.rank = world_size / 2, .size = world_size}, .epoch = epoch});
  std::uint64_t samples = 0, sum = 0;
  const bench::clocks before = bench::now();
  while (const auto s = cursor.next()) {
    sum += s->sample.index ^ s->sample.shard;
    ++samples;
  }
  const bench::clocks spent = bench::now() - before;
  if (sum == 1) std::printf("never\n");   // keeps the reads of the samples
  return spent.cpu_s * 1e9 / static_cast<double>(samples);
}

void measure_walk(bench::harness& run) {
  std::printf("\none epoch of the plan, 1.28 million samples in 1,281 shards, 48 lanes (CPU ns per sample)\n");
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
  std::printf("\none epoch of the plan of a mix of four sources, 1.28 million samples (CPU ns per sample of one\n"
              "rank, which skips those of the others), and of an exact_order of the same size\n");
  const mr::detail::mix_plan mixed = mix_of_four(window);
  const mr::detail::exact_order alone = image_net_sized(window, 7);
  std::vector<double> one, eight, lanes;
  for (std::uint64_t round = 0; round < (run.quick() ? 3U : 9U); ++round) {
    one.push_back(ns_per_sample(mixed, 1, round));
    eight.push_back(ns_per_sample(mixed, 8, round));
    lanes.push_back(ns_per_sample(alone, 1, round));
  }
  std::printf("  1 rank: %s, 8 ranks: %s, exact_order: %s\n", bench::spread(one).c_str(), bench::spread(eight).c_str(),
              bench::spread(lanes).c_str());
  run.result("plan_mix_of_4_ranks_1", bench::median(one), "ns/sample", bench::at_most(150));
  run.result("plan_mix_of_4_ranks_8", bench::median(eight), "ns/sample");

  std::printf("\nfrom the counts and a position in the middle of an epoch to the first sample of the mix (CPU ms)\n");
  std::vector<double> first;
  for (std::uint64_t round = 0; round < (run.quick() ? 20U : 200U); ++round) {
    const bench::clocks before = bench::now();
    const mr::detail::mix_plan plan = mix_of_four(window);
    mr::detail::mix_cursor cursor(plan, {.epoch = round, .position = 640'000 / 192 * 192});
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
      const mr::detail::exact_order plan = image_net_sized(window, round);
      mr::detail::lane_cursor cursor(plan, {.epoch = round, .position = 640'000 / 192 * 192});
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

struct example {
  mr::tensor<std::uint8_t, 1> payload;
  std::int32_t label;
};

/// Records of equal size in a folder of the benchmarks' data.
struct record_set {
  std::string folder;
  int shards = 0, records_per_shard = 0;
  std::size_t record_bytes = 0;
};

/// Writes the records unless they exist. Returns their folder.
std::string written(const record_set& set) {
  const std::string folder = bench::data_folder() + "/" + set.folder;
  if (std::filesystem::exists(folder)) return folder;
  std::filesystem::remove_all(folder + ".new");
  std::filesystem::create_directories(folder + ".new");
  mr::shard_writer writer(
      {.pattern = folder + ".new/s-%04d.tar", .max_samples = static_cast<std::uint64_t>(set.records_per_shard)});
  const std::string payload(set.record_bytes, 'x');
  for (int i = 0; i < set.shards * set.records_per_shard; ++i)
    writer.write(std::to_string(i), {{"bin", payload}, {"cls", std::to_string(i)}});
  writer.close();
  std::filesystem::rename(folder + ".new", folder);
  return folder;
}

/// The trainer's waits in us: for the first batches of epochs (except the first one), and for all others.
struct waits {
  std::vector<double> first, others;
};

waits waits_of(const std::string& shards, long step_us, std::uint64_t epochs) {
  auto flow = mr::shards(shards, {.seed = 7}) | mr::shuffle({.window = 4'096}) | mr::map([](const mr::record& r) {
                return example{mr::array<std::uint8_t, 1>(r["bin"]), r["cls"].as<std::int32_t>()};
              }) |
              mr::batch<&example::payload, &example::label>({.size = 192});
  mr::session run{std::move(flow), {.epochs = epochs, .notice = mr::quiet}};
  waits result;
  const timespec step{0, step_us * 1'000};
  double request_s = bench::now().wall_s;
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    bool first = true;
    for (auto& b : run.epoch(epoch)) {
      const double wait_us = (bench::now().wall_s - request_s) * 1e6;
      if (epoch > 0 && b.size() > 0) (first ? result.first : result.others).push_back(wait_us);
      first = false;
      if (step_us > 0) nanosleep(&step, nullptr);
      request_s = bench::now().wall_s;
    }
  }
  return result;
}

void measure_epoch_boundary(bench::harness& run) {
  std::printf("\nthe wait for the first batch of an epoch and for the others, 85 batches of 192 records "
              "of 2 KB (wall us)\n");
  const std::string shards = written(
      {.folder = "border-32-512", .shards = 32, .records_per_shard = 512, .record_bytes = 2'048});
  for (const long step_us : {0L, 2'000L}) {
    const waits w = waits_of(shards, step_us, run.quick() ? 10 : 40);
    std::printf("  steps of %ld us: first %s, others %s\n", step_us, bench::spread(w.first).c_str(),
                bench::spread(w.others).c_str());
    const std::string name = "border_step_" + std::to_string(step_us) + "us_wait";
    run.result(name + "_first_batch", bench::median(w.first), "us");
    run.result(name + "_other_batches", bench::median(w.others), "us");
    run.result(name + "_more_for_first", bench::median(w.first) - bench::median(w.others), "us", bench::at_most(200));
  }
}


example prepare(const mr::record& r) { return {mr::array<std::uint8_t, 1>(r["bin"]), r["cls"].as<std::int32_t>()}; }

struct session_cost {
  double start_ms, us_per_sample;   // wall time to the first batch; CPU time
};

template <class Example, class Flow>
session_cost cost_of(Flow flow) {
  const double begin = bench::now().wall_s;
  mr::session run{std::move(flow) | mr::batch<Example>({.size = 64}), {.epochs = 3, .notice = mr::quiet}};
  session_cost cost{};
  std::uint64_t samples = 0;
  bench::clocks first;
  for (auto& b : run) {
    if (cost.start_ms == 0) {
      cost.start_ms = (bench::now().wall_s - begin) * 1e3;
      first = bench::now();
    } else {
      samples += b.size();
    }
  }
  cost.us_per_sample = (bench::now() - first).cpu_s * 1e6 / static_cast<double>(samples);
  return cost;
}

void measure_many(bench::harness& run) {
  std::printf("\n1,600 shards of 8 records of 16 KB: one source, and a mix of 1,600 (CPU us per sample; ms to the\n"
              "first batch)\n");
  const std::string folder = written(
      {.folder = "many-1600-8", .shards = 1'600, .records_per_shard = 8, .record_bytes = 16'384});
  std::vector<double> one, mix, start, ratio;
  for (int round = 0; round < (run.quick() ? 3 : 9); ++round) {
    const session_cost alone = cost_of<example>(mr::shards(folder) | mr::shuffle({.window = 12'800}) |
                                                mr::map(prepare));
    const auto source = [&](int i) {
      char name[32];
      std::snprintf(name, sizeof name, "/s-%04d.tar", i);
      return mr::weighted{mr::shards(folder + name) | mr::shuffle({.window = 8}) | mr::map(prepare)};
    };
    std::vector<decltype(source(0))> sources;
    for (int i = 0; i < 1'600; ++i) sources.push_back(source(i));
    const session_cost mixed = cost_of<example>(mr::mix({.on_exhausted = mr::exhausted::repeat}, std::move(sources)));
    one.push_back(alone.us_per_sample);
    mix.push_back(mixed.us_per_sample);
    ratio.push_back(mixed.us_per_sample / alone.us_per_sample);
    start.push_back(mixed.start_ms);
  }
  std::printf("  one source: %s, mix: %s, ratio: %s, first batch of the mix: %s ms\n", bench::spread(one).c_str(),
              bench::spread(mix).c_str(), bench::spread(ratio).c_str(), bench::spread(start).c_str());
  run.result("mix_of_1600_against_one_source", bench::median(ratio), "", bench::at_most(1.1));
  run.result("mix_of_1600_first_batch", bench::median(start), "ms", bench::at_most(3'000));
}

struct with_embedding {
  mr::tensor<std::uint8_t, 1> payload;
  mr::tensor<float, 1> embedding;
};

with_embedding prepare_both(const mr::record& r) {
  return {mr::array<std::uint8_t, 1>(r["bin"]), mr::array<float, 1>(r["emb"])};
}

/// Two sets, and one set with the fields of both.
struct parallel_sets {
  std::string payloads, embeddings, both;
};

/// Writes the sets unless they exist. `step`: the distance of neighbors of the first set in the second set.
parallel_sets written_in_parallel(std::size_t payload_bytes, int samples, int step) {
  const std::string folder = bench::data_folder() + "/join-" + std::to_string(payload_bytes) + "-" +
                             std::to_string(samples) + "-" + std::to_string(step);
  const parallel_sets sets{folder + "/a-*.tar", folder + "/b-*.tar", folder + "/ab-*.tar"};
  if (std::filesystem::exists(folder)) return sets;
  std::filesystem::remove_all(folder + ".new");
  std::filesystem::create_directories(folder + ".new");
  const std::string payload(payload_bytes, 'x'), embedding(768 * sizeof(float), '\0');
  const auto write = [&](const char* name, std::uint64_t per_shard, int distance, bool has_payload,
                         bool has_embedding) {
    mr::shard_writer writer({.pattern = folder + ".new/" + name + "-%04d.tar", .max_samples = per_shard});
    for (int i = 0; i < samples; ++i) {
      std::vector<mr::named_bytes> fields;
      if (has_payload) fields.emplace_back("bin", payload);
      if (has_embedding) fields.emplace_back("emb", embedding);
      writer.write("key/" + std::to_string(static_cast<std::int64_t>(i) * distance % samples), fields);
    }
    writer.close();
  };
  write("a", 256, 1, true, false);
  write("b", 1'000, step, false, true);
  write("ab", 256, 1, true, true);
  std::filesystem::rename(folder + ".new", folder);
  return sets;
}

void measure_join(bench::harness& run) {
  std::printf("\na join of payloads and embeddings of 3 KB, against one set with both (CPU us per sample; ms to the\n"
              "first batch)\n");
  struct kind {
    const char* name;
    std::size_t payload_bytes;
    int samples, step;
    bench::goal target;
    std::vector<double> join, one, ratio, start;
  };
  kind kinds[] = {{"100_kb", 100'000, 4'096, 1, bench::at_most(1.15), {}, {}, {}, {}},
                  {"8_kb", 8'000, 16'384, 1, bench::at_most(1.15), {}, {}, {}, {}},
                  {"100_kb_other_order", 100'000, 4'096, 1'237, bench::goal{}, {}, {}, {}, {}}};
  const auto cost = [](auto source) { return cost_of<with_embedding>(std::move(source)); };
  for (int round = 0; round < (run.quick() ? 3 : 9); ++round)
    for (kind& k : kinds) {
      const parallel_sets sets = written_in_parallel(k.payload_bytes, k.samples, k.step);
      const session_cost alone = cost(mr::shards(sets.both) | mr::shuffle({.window = 2'048}) | mr::map(prepare_both));
      const session_cost joined = cost(mr::join(mr::shards(sets.payloads), mr::shards(sets.embeddings)) |
                                       mr::shuffle({.window = 2'048}) | mr::map(prepare_both));
      k.one.push_back(alone.us_per_sample);
      k.join.push_back(joined.us_per_sample);
      k.ratio.push_back(joined.us_per_sample / alone.us_per_sample);
      k.start.push_back(joined.start_ms);
    }
  for (const kind& k : kinds) {
    std::printf("  %s: one set: %s, join: %s, ratio: %s, first batch of the join: %s ms\n", k.name,
                bench::spread(k.one).c_str(), bench::spread(k.join).c_str(), bench::spread(k.ratio).c_str(),
                bench::spread(k.start).c_str());
    run.result("join_against_one_set_" + std::string(k.name), bench::median(k.ratio), "", k.target);
  }
}

}   // namespace

int main(int argc, char** argv) {
  bench::harness run(argc, argv, "order");
  return bench::run_guarded([&] {
    if (run.wants("walk")) measure_walk(run);
    if (run.wants("mix")) measure_mix(run);
    if (run.wants("resume")) measure_resume(run);
    if (run.wants("border")) measure_epoch_boundary(run);
    if (run.wants("many")) measure_many(run);
    if (run.wants("join")) measure_join(run);
    return run.finish();
  });
}
