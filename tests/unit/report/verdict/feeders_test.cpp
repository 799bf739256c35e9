#include "../sample_statistics.hpp"

#include <millrace/report/run_report.hpp>

#include <doctest/doctest.h>

#include <algorithm>

namespace mr = millrace;

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
