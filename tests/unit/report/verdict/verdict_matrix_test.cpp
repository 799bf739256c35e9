// Bottlenecks planted in simulated runs: the verdict has to find them.
#include <millrace/report/run_report.hpp>
#include <millrace/report/simulate/what_if.hpp>
#include <millrace/report/verdict/knobs.hpp>

#include "../../../thorough.hpp"
#include "../sample_statistics.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

namespace mr = millrace;
using mr::knob;

namespace {

enum class planted { latency, bandwidth, unpack, work, transfer, consumer };
constexpr planted all_planted[] = {planted::latency, planted::bandwidth, planted::unpack,
                                   planted::work, planted::transfer, planted::consumer};

std::string name_of(planted p) {
  switch (p) {
    case planted::latency: return "latency";
    case planted::bandwidth: return "bandwidth";
    case planted::unpack: return "unpack";
    case planted::work: return "work";
    case planted::transfer: return "transfer";
    case planted::consumer: break;
  }
  return "consumer";
}

/// With shallow rings and times from 0 to twice the mean no stage is always busy: all starve and block in turns.
enum class rings { usual, shallow };

/// The capacity of each stage as nanoseconds of a sample: the bottleneck is `ratio` times the runner-up, which is one
/// of the others, and these are up to three times faster.
mr::detail::pipeline_model plant(planted where, double ratio, std::uint64_t seed, rings how = rings::usual) {
  mr::rng random({.seed = seed, .stage = static_cast<std::uint64_t>(where)});
  const double slowest_ns = 1e6;
  const bool unpacks = where == planted::unpack;
  std::array<double, 4> ns{};   // reading, work, copy, step
  const std::size_t bottleneck = where <= planted::unpack ? 0 : static_cast<std::size_t>(where) - 2;
  const std::size_t runner_up = (bottleneck + 1 + random.below(3)) % 4;
  for (std::size_t i = 0; i < 4; ++i) {
    const double next = slowest_ns / ratio;
    ns[i] = i == bottleneck ? slowest_ns : i == runner_up ? next : next / random.uniform(1, 3);
  }
  mr::detail::pipeline_model m;
  m.io_threads = 1 + random.below(6);
  m.workers = 1 + random.below(8);
  m.host_slots = how == rings::shallow ? 2 : 3 + random.below(3);
  m.device_slots = how == rings::shallow ? 1 + random.below(2) : 2 + random.below(2);
  m.batch_samples = 8 << random.below(4);
  m.samples_per_read = 1 + random.below(4);
  m.read_ahead_bytes = 20'000'000;
  const auto per_sample = static_cast<double>(m.samples_per_read), threads = static_cast<double>(m.io_threads);
  const auto rows = static_cast<double>(m.batch_samples);
  const auto spread = [&](double mean_ns) {
    return mr::detail::empirical_distribution::around(mean_ns, how == rings::shallow ? 0.95 : 0.5);
  };
  if (where == planted::bandwidth) m.contention = 1;
  const double of_a_read = ns[0] * per_sample * mr::read_levels::speed(threads, m.contention);
  m.read_ns = spread(unpacks ? 0.2 * of_a_read : of_a_read);
  if (unpacks) m.unpack_ns = spread(0.8 * of_a_read);
  m.work_ns = spread(ns[1] * static_cast<double>(m.workers));
  m.phases = {{"decode", 0.75}, {"resize", 0.25}};
  m.copy_ns = spread(ns[2] * rows);
  m.step_ns = spread(ns[3] * rows);
  m.batches = 40 + random.below(160);
  m.seed = seed;
  return m;
}

/// Every second run knows how fast the storage could be. Without that, slow answers look like a full pipe in an
/// I/O-bound run, whose threads all read all the time.
double ceiling(planted p, std::uint64_t seed) {
  if (seed % 2 == 0) return 0;
  return p == planted::bandwidth ? 1.02e8 : 4e8;   // 100 kB samples, 1000 of them a second
}

bool names(const mr::verdict& v, planted p) {
  switch (p) {
    case planted::latency: return v.what == mr::bound_by::io && v.cause != mr::bound_cause::bandwidth;
    case planted::bandwidth: return v.what == mr::bound_by::io && v.cause != mr::bound_cause::latency;
    case planted::unpack: return v.what == mr::bound_by::cpu && v.where == "unpack";
    case planted::work: return v.what == mr::bound_by::cpu && v.where == "decode";
    case planted::transfer: return v.what == mr::bound_by::transfer;
    case planted::consumer: break;
  }
  return v.what == mr::bound_by::consumer;
}

}  // namespace

TEST_CASE("a planted bottleneck is found in at least 95 of 100 runs, if it is 1.25 times slower than the next") {
  const std::uint64_t seeds = 40 / stride(2);
  for (const double ratio : {1.1, 1.25, 1.5, 2.0}) {
    std::uint64_t right_of_all = 0;
    for (const planted p : all_planted) {
      std::uint64_t right = 0, causes = 0;
      std::string misses;
      for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        mr::flow_statistics f = mr::detail::simulate(plant(p, ratio, seed)).statistics;
        f.storage_ceiling_bytes_per_s = ceiling(p, seed);
        const mr::verdict v = mr::judge(f);
        const bool is_right = names(v, p) || (ratio < 1.25 && v.what == mr::bound_by::balanced);
        if (v.cause != mr::bound_cause::none) ++causes;
        if (is_right) ++right;
        else misses += "\n    seed " + std::to_string(seed) + ": " + v.sentence();
      }
      right_of_all += right;
      if (p <= planted::bandwidth && ratio >= 1.25) CHECK(2 * causes >= seeds);
      MESSAGE(name_of(p) << " x " << ratio << ": " << right << " of " << seeds << ", " << causes << " with a cause"
                         << misses);
      if (ratio >= 1.25) CHECK(right * 100 >= seeds * 90);
    }
    CHECK(right_of_all * 100 >= seeds * std::size(all_planted) * (ratio >= 1.25 ? 95 : 90));
  }
}

TEST_CASE("two equally slow stages are called balanced") {
  constexpr std::uint64_t seeds = 40;
  std::uint64_t right = 0, all = 0;
  for (const planted p : all_planted)
    for (std::uint64_t seed = 1; seed <= seeds; ++seed, ++all) {
      const mr::verdict v = mr::judge(mr::detail::simulate(plant(p, 1, seed)).statistics);
      if (v.what == mr::bound_by::balanced) ++right;
      else MESSAGE(name_of(p) << " seed " << seed << ": " << v.sentence());
    }
  MESSAGE("balanced " << right << " of " << all);
  CHECK(right * 100 >= all * 95);
}

TEST_CASE("with shallow rings and varying times, stages wait in turns, and the limits still identify the slowest") {
  constexpr std::uint64_t seeds = 20;
  std::uint64_t right = 0, balanced = 0, disagreed = 0;
  for (const planted p : all_planted)
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      for (const double ratio : {1.25, 1.5, 2.0}) {
        const mr::verdict v = mr::judge(mr::detail::simulate(plant(p, ratio, seed, rings::shallow)).statistics);
        if (names(v, p)) ++right;
        else MESSAGE(name_of(p) << " x " << ratio << " seed " << seed << ": " << v.sentence());
        if (!v.agree) ++disagreed;
      }
      const mr::verdict v = mr::judge(mr::detail::simulate(plant(p, 1, seed, rings::shallow)).statistics);
      if (v.what == mr::bound_by::balanced) ++balanced;
    }
  const std::uint64_t all = seeds * std::size(all_planted);
  MESSAGE("right " << right << " of " << 3 * all << ", balanced " << balanced << " of " << all << "; limits and walk "
                   << "disagreed in " << disagreed);
  CHECK(right * 100 >= 3 * all * 95);
  CHECK(balanced * 100 >= all * 85);
  CHECK(disagreed > 0);   // otherwise the test would be void
}

TEST_CASE("replay predicts the effect of other settings on shallow rings, unlike the limits") {
  std::vector<double> by_limits, by_replay;
  for (const planted p : all_planted)
    for (std::uint64_t seed = 1; seed <= 12; seed += stride(3)) {
      const mr::detail::pipeline_model m = plant(p, seed % 2 ? 1.25 : 2, seed, rings::shallow);
      const mr::flow_statistics f = mr::detail::simulate(m).statistics;
      const auto limits = mr::gains_of(f), replay = mr::simulated_gains(f);
      REQUIRE(limits.size() == replay.size());
      for (std::size_t i = 0; i < limits.size(); ++i) {
        if (limits[i].at_most && limits[i].what != mr::knob::prefetch) continue;
        const auto changed_run = mr::detail::simulate(mr::detail::changed(m, limits[i].settings));
        const double truth = changed_run.statistics.samples_per_s() / f.samples_per_s();
        if (truth < 1.01) continue;
        by_limits.push_back(std::abs((1 + limits[i].gain) / truth - 1));
        by_replay.push_back(std::abs((1 + replay[i].gain) / truth - 1));
      }
    }
  std::sort(by_limits.begin(), by_limits.end());
  std::sort(by_replay.begin(), by_replay.end());
  const std::size_t half = by_replay.size() / 2, most = by_replay.size() * 9 / 10;
  MESSAGE(by_replay.size() << " changes; by limits: median error " << by_limits[half] << ", p90 " << by_limits[most]
                           << "; by replay: " << by_replay[half] << ", p90 " << by_replay[most]);
  CHECK(by_replay[half] < 0.05);
  CHECK(by_replay[most] < 0.10);
  CHECK(by_replay[half] < by_limits[half]);
}

TEST_CASE("the gain that the limits predict is that of the changed run") {
  std::map<std::string, std::vector<double>> errors;
  std::vector<double> all;
  for (const planted p : all_planted)
    for (const double ratio : {1.1, 1.25, 1.5, 2.0})
      for (std::uint64_t seed = 1; seed <= 10; seed += stride(3)) {
        const mr::detail::pipeline_model m = plant(p, ratio, seed);
        const mr::flow_statistics f = mr::detail::simulate(m).statistics;
        for (const mr::knob_gain& k : mr::gains_of(f)) {
          mr::what_if_change c;
          if (k.what == mr::knob::workers) c.workers = m.workers + 1;
          else if (k.what == mr::knob::io_threads && !k.at_most) c.io_threads = 2 * m.io_threads;
          else if (k.what == mr::knob::storage_speed) c.storage_speed = 2;
          else if (k.what == mr::knob::step) c.step_time = 0.5;
          else continue;
          const auto changed_run = mr::detail::simulate(mr::detail::changed(m, c));
          const double truth = changed_run.statistics.samples_per_s() / f.samples_per_s();
          if (truth < 1.01 && k.gain < 0.01) continue;   // no prediction and no gain: too easy
          const double error = std::abs((1 + k.gain) / truth - 1);
          errors[k.change.substr(k.change.find_last_of("0123456789") + 1)].push_back(error);
          all.push_back(error);
        }
      }
  for (auto& [what, gaps] : errors) {
    std::sort(gaps.begin(), gaps.end());
    MESSAGE(what << ": median error " << gaps[gaps.size() / 2] << ", p90 " << gaps[gaps.size() * 9 / 10] << " of "
                 << gaps.size());
  }
  std::sort(all.begin(), all.end());
  CHECK(all[all.size() / 2] < 0.05);
  CHECK(all[all.size() * 9 / 10] < 0.15);
}

namespace {

mr::stage_statistics& stage_of(mr::flow_statistics& f, mr::stage_kind kind) {
  return *std::find_if(f.stages.begin(), f.stages.end(), [&](const auto& s) { return s.kind == kind; });
}

}  // namespace

TEST_CASE("the gain of feeders is preparation over receiving, and ends at the next limit") {
  // 4 workers, 8 ms per row: 500 rows/s. Reading allows 2,000 rows/s.
  mr::flow_statistics f = statistics_of({.work_s = 40});
  CHECK_FALSE(mr::feeder_gain_of(f));   // nothing is known about receiving
  CHECK_FALSE(mr::judge(f).feeders);
  f.receive_ns_per_byte = 0.4;
  CHECK_FALSE(mr::feeder_gain_of(f));   // or about rows
  f.delivered_bytes = f.samples * 10'000'000;   // 4 ms to receive a row
  const mr::feeder_gain all = mr::feeder_gain_of(f).value();
  CHECK(all.times == doctest::Approx(2));
  CHECK(all.prepare_ns == doctest::Approx(8e6));
  CHECK(all.receive_ns == doctest::Approx(4e6));
  CHECK(all.gbit_per_s == doctest::Approx(80));   // 1,000 rows/s, all of them by feeders
  CHECK(all.feeder_cores == doctest::Approx(8));
  CHECK(all.next == "receiving");
  CHECK(all.text() == "feeders: 2.0 times, needs 80.0 Gb/s and 8 cores (a row of 10.0 MB costs 8.00 ms here, and "
                      "4.00 ms to receive)");
  const mr::verdict v = mr::judge(f);
  CHECK(v.feeders.value().times == doctest::Approx(2));
  CHECK(std::count(v.evidence.begin(), v.evidence.end(), all.text()) == 1);

  f.delivered_bytes = f.samples * 150'000;   // 60 us: the limit of reading is reached first
  const mr::feeder_gain some = mr::feeder_gain_of(f).value();
  CHECK(some.times == doctest::Approx(4));
  CHECK(some.next == "read");
  const double by_feeders = (2'000 * 8e-3 - 4) / (8e-3 - 60e-6);   // the workers have time for the others
  CHECK(some.gbit_per_s == doctest::Approx(8e-9 * 150'000 * by_feeders));
  CHECK(some.feeder_cores == doctest::Approx(8e-3 * by_feeders));

  f.delivered_bytes = f.samples * 30'000'000;   // receiving costs more than preparing
  CHECK(mr::feeder_gain_of(f).value().times == 1);
  CHECK(mr::feeder_gain_of(f).value().gbit_per_s == 0);
  CHECK(mr::judge(f).feeders.value().text().starts_with("feeders: no gain (a row of 30.0 MB costs 8.00 ms here"));
}

TEST_CASE("feeders relieve a JPEG run by 3.7 times, as the arithmetic of rows per core says") {
  mr::flow_statistics f = statistics_of({.read_s = 0.01, .work_s = 10, .copy_s = 0.01, .step_s = 0.01});
  mr::stage_statistics& work = stage_of(f, mr::stage_kind::work);
  work.concurrency = 1;
  f.samples = 50'490;   // 5,049 rows/s on one core
  for (mr::stage_statistics& s : f.stages) s.items = f.samples;
  f.delivered_bytes = f.samples * 150'528;
  f.receive_ns_per_byte = 0.36;
  const mr::feeder_gain g = mr::judge(f).feeders.value();
  CHECK(g.times == doctest::Approx(198'059 / (0.36 * 150'528)).epsilon(0.001));
  CHECK(g.gbit_per_s == doctest::Approx(22.2).epsilon(0.01));
  work.cpu_ns = work.busy_ns / 2;   // other programs use half of the core, and would slow receiving, too
  work.run_delay_ns = work.busy_ns / 2;
  CHECK(mr::judge(f).feeders.value().times == doctest::Approx(g.times / 2).epsilon(0.001));
  work.run_delay_ns = 0;   // the workers wait for a device: receiving does not
  CHECK(mr::judge(f).feeders.value().times == doctest::Approx(g.times).epsilon(0.001));
  f.throttled_ns = work.busy_ns / 2;   // a quota
  CHECK(mr::judge(f).feeders.value().times == doctest::Approx(g.times / 2).epsilon(0.001));
}

TEST_CASE("feeders do not help a run that its step, its storage or its device limits") {
  for (const busy_seconds& busy :
       {busy_seconds{.step_s = 10}, busy_seconds{.read_s = 20}, busy_seconds{.copy_s = 10}}) {
    mr::flow_statistics f = statistics_of(busy);
    f.delivered_bytes = f.samples * 150'000;
    f.receive_ns_per_byte = 0.4;
    CHECK_FALSE(mr::judge(f).feeders);
    const auto gain = mr::feeder_gain_of(f);
    CHECK(gain.value().times == 1);
    f.receive_ns_per_byte = 0;
    mr::detail::measure_receiving_if_useful(f);
    CHECK(f.receive_ns_per_byte == 0);
  }
}

TEST_CASE("the cost of receiving is measured over the loopback interface, if the workers are the limit") {
  mr::flow_statistics f = statistics_of({.work_s = 40});
  f.delivered_bytes = f.samples * 150'000;
  mr::detail::measure_receiving_if_useful(f);
  CHECK(f.receive_ns_per_byte > 0.01);   // 100 GB/s is beyond the memory of a core
  CHECK(mr::judge(f).feeders.has_value());
  MESSAGE("receiving: " << f.receive_ns_per_byte << " ns per byte");
}

namespace {

std::vector<knob> knobs_of(const std::vector<mr::knob_gain>& gains) {
  std::vector<knob> all;
  for (const mr::knob_gain& g : gains) all.push_back(g.what);
  return all;
}
std::vector<std::string> changes_of(const std::vector<mr::knob_gain>& gains) {
  std::vector<std::string> all;
  for (const mr::knob_gain& g : gains) all.push_back(g.change);
  return all;
}

}  // namespace

TEST_CASE("a run with idle cores has a gain for each knob, with the settings of the change") {
  mr::flow_statistics f = statistics_of({.work_s = 40});
  f.usable_cores = 16;
  const auto gains = mr::gains_of(f);
  CHECK(changes_of(gains) ==
        std::vector<std::string>{"4 -> 5 workers", "4 -> 16 workers", "decode at half the cost", "2 -> 4 I/O threads",
                                 "storage twice as fast", "4 -> 8 batches prefetched", "50 -> 100 samples per batch",
                                 "step twice as fast"});
  CHECK(knobs_of(gains) == std::vector<knob>{knob::workers, knob::workers, knob::work, knob::io_threads,
                                             knob::storage_speed, knob::prefetch, knob::batch, knob::step});
  CHECK(gains[0].gain == doctest::Approx(0.25));
  CHECK(gains[0].settings.workers == 5);
  CHECK(gains[1].settings.workers == 16);
  CHECK(gains[2].settings.work_time == doctest::Approx(0.65));
  CHECK(gains[3].settings.io_threads == 4);
  CHECK(gains[4].settings.storage_speed == 2);
  CHECK(gains[5].settings.prefetch == 8);
  CHECK(gains[5].at_most);
  CHECK(gains[6].settings.batch == 100);
  CHECK(gains[6].settings.step_time == 0.5);
  CHECK(gains[6].remark == "assumes that copying and the step take the same time");
  CHECK(gains[7].settings.step_time == 0.5);
}

TEST_CASE("an unknown knob has no settings, and a missing stage has no knob") {
  mr::flow_statistics f = statistics_of({.work_s = 40});
  f.usable_cores = 4;
  f.host_slots = f.batch_samples = 0;
  stage_of(f, mr::stage_kind::work).phases.clear();
  stage_of(f, mr::stage_kind::read).concurrency = 0;
  const auto gains = mr::gains_of(f);
  CHECK(changes_of(gains) ==
        std::vector<std::string>{"4 -> 5 workers", "deeper prefetch", "twice the batch", "step twice as fast"});
  CHECK(gains[0].remark == "all 4 usable cores already have a worker");
  CHECK_FALSE(gains[0].settings.workers);
  CHECK_FALSE(gains[1].settings.prefetch);
  CHECK_FALSE(gains[2].settings.batch);
  CHECK(gains[2].settings.step_time == 1);
}

TEST_CASE("a run without metrics or without samples has no gains") {
  CHECK(mr::gains_of({}).empty());
  mr::flow_statistics f = statistics_of({});
  f.samples = 0;
  CHECK(mr::gains_of(f).empty());
}

TEST_CASE("of two equally costly phases the first is halved") {
  mr::flow_statistics f = statistics_of({.work_s = 40});
  stage_of(f, mr::stage_kind::work).phases = {{"a", in_ns(20), {}}, {"b", in_ns(20), {}}};
  const auto changes = changes_of(mr::gains_of(f));
  CHECK(std::count(changes.begin(), changes.end(), "a at half the cost") == 1);
}
