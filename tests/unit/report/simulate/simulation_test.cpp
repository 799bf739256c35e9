#include <millrace/base/error.hpp>
#include <millrace/report/simulate/what_if.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace mr = millrace;
using mr::detail::empirical_distribution;

namespace {

using times = mr::detail::empirical_distribution;

double draw(const empirical_distribution& times, std::uint64_t seed, std::uint64_t number, std::uint64_t stage) {
  mr::rng random({.seed = seed, .sample = number, .stage = stage});
  return times.at(random);
}

/// The end of each batch's step, by the recurrences of the flow: without events, without bounds in bytes, and with
/// reads that do not disturb each other.
std::vector<double> slow_step_ends(const mr::detail::pipeline_model& m, std::size_t batches) {
  const auto first_free = [](std::vector<double>& all) -> double& { return *std::min_element(all.begin(), all.end()); };
  std::vector<double> readers(m.io_threads, 0.0), workers(m.workers, 0.0), slot_free(batches + m.host_slots, 0.0),
      copy_end(batches, 0.0), step_end(batches, 0.0);
  double arrived = 0;
  std::uint64_t reads = 0;
  for (std::size_t b = 0; b < batches; ++b) {
    double filled = 0;
    for (std::uint64_t t = b * m.batch_samples; t < (b + 1) * m.batch_samples; ++t) {
      for (; reads * m.samples_per_read <= t; ++reads) {
        double& reader = first_free(readers);
        reader += draw(m.read_ns, m.seed, reads, 0) + draw(m.unpack_ns, m.seed, reads, 1);
        arrived = std::max(arrived, reader);
      }
      double& worker = first_free(workers);
      worker = std::max({worker, arrived, slot_free[b]}) + draw(m.work_ns, m.seed, t, 2);
      filled = std::max(filled, worker);
    }
    double ready = filled;
    if (m.device_slots > 0) {
      const double room = b >= m.device_slots ? step_end[b - m.device_slots] : 0;
      ready = copy_end[b] = std::max({filled, room, b > 0 ? copy_end[b - 1] : 0}) + draw(m.copy_ns, m.seed, b, 3);
    }
    step_end[b] = std::max(ready, b > 0 ? step_end[b - 1] : 0) + draw(m.step_ns, m.seed, b, 4);
    slot_free[b + m.host_slots] = m.device_slots > 0 ? copy_end[b] : step_end[b];
  }
  return step_end;
}

mr::detail::pipeline_model any_model(mr::rng& random) {
  const auto about = [&](double ns) {
    const double mean_ns = ns * random.uniform(0.5, 2);   // drawn first, with every compiler
    return times::around(mean_ns, random.uniform(0, 0.9));
  };
  mr::detail::pipeline_model m;
  m.io_threads = 1 + random.below(5);
  m.workers = 1 + random.below(6);
  m.host_slots = 1 + random.below(5);
  m.device_slots = random.below(4);
  m.batch_samples = 1 + random.below(20);
  m.samples_per_read = 1 + random.below(7);
  m.read_ns = about(1e6 * static_cast<double>(m.io_threads * m.samples_per_read));
  if (random.chance(0.5)) m.unpack_ns = about(3e5);
  m.work_ns = about(1e6 * static_cast<double>(m.workers));
  m.copy_ns = about(1e6 * static_cast<double>(m.batch_samples));
  m.step_ns = about(1e6 * static_cast<double>(m.batch_samples));
  m.read_ahead_bytes = std::size_t{1} << 40;
  m.seed = random.bits();
  return m;
}

}  // namespace

TEST_CASE("the simulation delivers each batch at the time of the flow's recurrences") {
  mr::rng random({.seed = 5});
  for (int i = 0; i < 200; ++i) {
    CAPTURE(i);
    mr::detail::pipeline_model m = any_model(random);
    m.warm_up_batches = 0;
    m.batches = 1 + random.below(40);
    const mr::detail::simulated fast = mr::detail::simulate(m);
    const auto slow = slow_step_ends(m, m.batches);
    const auto& delivered = fast.events.deliveries;
    REQUIRE(delivered.size() >= m.batches);
    for (std::size_t b = 0; b < m.batches; ++b)
      REQUIRE(static_cast<double>(delivered[b].at_ns) + static_cast<double>(delivered[b].step_ns) ==
              doctest::Approx(slow[b]).epsilon(1e-6));
    CHECK(static_cast<double>(fast.statistics.wall_ns) == doctest::Approx(slow.back()).epsilon(1e-6));
  }
}

TEST_CASE("times add up: each stage's workers are always busy, starved or blocked") {
  mr::rng random({.seed = 6});
  for (int i = 0; i < 30; ++i) {
    const mr::detail::pipeline_model m = any_model(random);
    const mr::flow_statistics f = mr::detail::simulate(m).statistics;
    CHECK(f.batches == m.batches);
    CHECK(f.warm_up_batches == m.warm_up_batches);
    double on_io_threads = 0;
    for (const auto& s : f.stages) {
      CAPTURE(s.name);
      const auto all = static_cast<double>(s.busy_ns + s.starved_ns + s.blocked_ns);
      const double most = static_cast<double>(s.concurrency) * static_cast<double>(f.wall_ns);
      if (s.kind == mr::stage_kind::read || s.kind ==
          mr::stage_kind::unpack) on_io_threads += all / most;
      else CHECK(all == doctest::Approx(most).epsilon(1e-6));
    }
    CHECK(on_io_threads == doctest::Approx(1).epsilon(1e-6));
  }
}

TEST_CASE("the same seed produces the same run, another one another") {
  mr::rng random({.seed = 7});
  mr::detail::pipeline_model m = any_model(random);
  m.work_ns = times::around(5e6, 0.5);
  const mr::flow_statistics once = mr::detail::simulate(m).statistics, again = mr::detail::simulate(m).statistics;
  CHECK(once.wall_ns == again.wall_ns);
  CHECK(once.wait_ns == again.wait_ns);
  ++m.seed;
  CHECK(mr::detail::simulate(m).statistics.wall_ns != once.wall_ns);
}

TEST_CASE("reads share the storage by their contention") {
  for (const double contention : {0.0, 0.3, 1.0})
    for (const std::size_t threads : {1U, 2U, 8U}) {
      CAPTURE(contention);
      CAPTURE(threads);
      mr::detail::pipeline_model m{.io_threads = threads, .batch_samples = 16, .contention = contention,
                           .read_ns = times::around(1e7, 0.5), .work_ns = times::fixed(1e3),
                           .step_ns = times::fixed(1e3)};
      const mr::flow_statistics f = mr::detail::simulate(m).statistics;
      const double expected = 100 * mr::read_levels::speed(static_cast<double>(threads), contention);
      CHECK(f.samples_per_s() == doctest::Approx(expected).epsilon(0.03));
      CHECK(f.reads_at_once.mean_outstanding() == doctest::Approx(static_cast<double>(threads)).epsilon(0.01));
    }
}

TEST_CASE("contention is derived again from a run in which the number of reads varies") {
  for (const double contention : {0.0, 0.25, 0.6, 1.0}) {
    CAPTURE(contention);
    mr::detail::pipeline_model m{.io_threads = 6, .workers = 4, .batch_samples = 16, .read_ahead_bytes = 2'000'000,
                         .contention = contention, .read_ns = times::around(1e6, 0.5),
                         .work_ns = times::around(4e6 * (1.3 + 3 * contention), 0.9),
                         .step_ns = times::fixed(1e3), .batches = 400};
    const auto actual = mr::detail::simulate(m).statistics.reads_at_once.contention();
    REQUIRE(actual);
    CHECK(*actual < contention + 0.1);
    CHECK(*actual > 0.65 * contention - 0.05);
  }
}

TEST_CASE("prefetched data stay within their bound, and a bound below one read lets single ones through") {
  for (const std::size_t bound : {1UL, 300'000UL, 1'000'000UL}) {
    CAPTURE(bound);
    mr::detail::pipeline_model m{.read_ahead_bytes = bound, .samples_per_read = 3, .read_ns = times::around(1e6, 0.5),
                         .work_ns = times::around(1e6, 0.5), .step_ns = times::fixed(1e8), .batches = 50};
    const mr::detail::simulated s = mr::detail::simulate(m);
    const std::size_t most = std::max<std::size_t>(bound, 300'000);
    for (const auto& d : s.events.deliveries) CHECK(d.read_ahead_bytes <= most);
    CHECK(s.statistics.batches == 50);
  }
}

TEST_CASE("a recorded run's model equals the run's") {
  mr::rng random({.seed = 8});
  for (int i = 0; i < 20; ++i) {
    CAPTURE(i);
    mr::detail::pipeline_model m = any_model(random);
    m.batches = 300;
    const mr::detail::simulated s = mr::detail::simulate(m);
    const mr::detail::pipeline_model fitted = mr::detail::model_of(s.statistics);
    CHECK(fitted.workers == m.workers);
    CHECK(fitted.io_threads == m.io_threads);
    CHECK(fitted.host_slots == m.host_slots);
    CHECK(fitted.samples_per_read == m.samples_per_read);
    CHECK(fitted.sample_bytes == doctest::Approx(m.sample_bytes).epsilon(0.01));
    CHECK(fitted.work_ns.mean() == doctest::Approx(m.work_ns.mean()).epsilon(0.05));
    // The mean of 300 steps that vary by up to 90 % has a standard deviation of 3 %.
    CHECK(fitted.step_ns.mean() == doctest::Approx(m.step_ns.mean()).epsilon(0.12));
    CHECK(mr::detail::simulate(fitted).statistics.samples_per_s() ==
          doctest::Approx(s.statistics.samples_per_s()).epsilon(0.08));
  }
}

TEST_CASE("the effect of other settings is predicted from the recorded run alone") {
  mr::rng random({.seed = 9});
  std::vector<double> errors;
  for (int i = 0; i < 40; ++i) {
    mr::detail::pipeline_model m = any_model(random);
    m.batches = 300;
    const mr::flow_statistics recorded = mr::detail::simulate(m).statistics;
    mr::what_if_change c;
    switch (i % 6) {
      case 0: c.workers = 2 * m.workers; break;
      case 1: c.storage_speed = 0.4; break;
      case 2: c.step_time = 0.5; break;
      case 3: c.prefetch = m.host_slots + 4; break;
      case 4: c.batch = 2 * m.batch_samples; break;
      case 5: c.io_threads = m.io_threads + 2; break;
    }
    mr::detail::pipeline_model other = mr::detail::changed(m, c);
    other.seed = 77;   // another run
    const double truth = mr::detail::simulate(other).statistics.samples_per_s();
    errors.push_back(std::abs(mr::what_if(recorded, c).samples_per_s / truth - 1));
  }
  std::sort(errors.begin(), errors.end());
  MESSAGE("median error " << errors[20] << ", largest " << errors.back());
  CHECK(errors[20] < 0.02);
  CHECK(errors[36] < 0.10);
}

TEST_CASE("drawn times are the recorded ones: their mean exactly, their quantiles within a bucket") {
  mr::rng random({.seed = 10});
  mr::distribution recorded;
  for (int i = 0; i < 2'000; ++i) recorded.add(static_cast<std::uint64_t>(std::exp2(10 + 10 * random.uniform())));
  const empirical_distribution times(recorded);
  CHECK(times.mean() == doctest::Approx(recorded.mean()));
  mr::distribution again;
  for (int i = 0; i < 200'000; ++i) again.add(static_cast<std::uint64_t>(times.at(random)));
  CHECK(again.mean() == doctest::Approx(recorded.mean()).epsilon(0.01));
  for (const double share : {0.1, 0.5, 0.9, 0.99})
    CHECK(again.quantile(share) == doctest::Approx(recorded.quantile(share)).epsilon(0.07));
  CHECK(times.scaled(3).with_mean(5).mean() == doctest::Approx(5));
  CHECK(empirical_distribution().at(random) == 0);
  CHECK(empirical_distribution(mr::distribution()).with_mean(7).at(random) == 7);
}

TEST_CASE("a model that can never deliver is refused") {
  CHECK_THROWS_AS(mr::detail::simulate({.workers = 0}), mr::setup_error);
  CHECK_THROWS_AS(mr::detail::simulate({.batch_samples = 0}), mr::setup_error);
}

TEST_CASE("a change without a number is refused, and names the setting") {
  const mr::flow_statistics recorded =
      mr::detail::simulate({.workers = 2, .work_ns = empirical_distribution::fixed(2e6)}).statistics;
  const double none = std::numeric_limits<double>::quiet_NaN(), endless = std::numeric_limits<double>::infinity();
  for (const double factor : {0.0, -1.0, none, endless}) {
    CHECK_THROWS_WITH_AS((void)mr::what_if(recorded, {.storage_speed = factor}),
                         doctest::Contains("what_if_change::storage_speed is out of range: got"), mr::setup_error);
    CHECK_THROWS_AS((void)mr::what_if(recorded, {.work_time = factor}), mr::setup_error);
    if (factor != 0) CHECK_THROWS_AS((void)mr::what_if(recorded, {.step_time = factor}), mr::setup_error);
  }
  CHECK_THROWS_AS((void)mr::what_if(recorded, {.batch = 0}), mr::setup_error);
  CHECK(mr::what_if(recorded, {.step_time = 0}).samples_per_s > 0);
}
