#include "../sample_statistics.hpp"
#include <millrace/report/print/charts.hpp>

#include <doctest/doctest.h>

#include <string>

namespace mr = millrace;

TEST_CASE("charts show batches by their numbers, rings with all their slots, and no step that has not ended") {
  mr::run_report r = mr::report_of(statistics_of({.work_s = 40}));
  r.statistics.host_slots = 4;
  r.statistics.device_slots = 4;
  for (std::uint64_t n = 0; n < 3; ++n)
    r.events.deliveries.push_back({.at_ns = static_cast<std::int64_t>(n) * 10'000'000, .wait_ns = 0,
                                   .step_ns = n < 2 ? 8'000'000U : 0U, .ready_slots = 4, .number = 1'000 + n});
  const std::string steps = mr::detail::step_chart(r), queues = mr::detail::queue_chart(r);
  CHECK(holds(steps, ">1000</text>"));
  CHECK(holds(steps, ">1001</text>"));
  CHECK_FALSE(holds(steps, ">1002</text>"));
  CHECK(holds(queues, "<title>batch 1002: ready batches 50.0 %</title>"));   // four of eight are ready
  while (r.events.deliveries.size() < 20) {
    r.events.deliveries.push_back(r.events.deliveries.back());
    r.events.deliveries.back().at_ns += 10'000'000;
  }
  CHECK(holds(mr::detail::queue_chart(r), "d=\"M46.0 105.0L"));   // half way up
}

TEST_CASE("charts of one and of two points show them as columns, with their values") {
  mr::run_report r = mr::report_of(statistics_of({.work_s = 40}));
  r.statistics.read_ahead_bytes = 1'000'000;
  r.statistics.device_slots = 0;
  for (std::size_t points = 1; points <= 2; ++points) {
    CAPTURE(points);
    r.events.deliveries.push_back({.at_ns = 5, .wait_ns = 4'000'000, .step_ns = 8'000'000U * points, .ready_slots = 1,
                                   .read_ahead_bytes = 500'000, .number = points - 1});
    const std::string steps = mr::detail::step_chart(r), queues = mr::detail::queue_chart(r);
    CHECK(times_in(steps, "<rect") == 2 * points);
    CHECK(holds(steps, "batch 0: step 8.00 ms"));
    CHECK(holds(steps, ">12.0</text>"));
    CHECK(holds(steps, ">20.0</text>") == (points == 2));
    CHECK(times_in(queues, "<rect") == 2 * points);
    CHECK(holds(queues, "batch 0: read ahead 50.0 %"));
    CHECK(times_in(queues, ">25</text>") == points);
    CHECK_FALSE(holds(steps + queues, "<path class=\"line"));
    CHECK_FALSE(holds(steps + queues, ">-0</text>"));
    r.scaling = {{1, 125, false}};
    if (points == 2) r.scaling.push_back({2, 250, true});
    CHECK(times_in(mr::detail::scaling_chart(r), "<rect") == points);
    CHECK(holds(mr::detail::scaling_chart(r), ">125</text>"));
  }
  // Marks never overlap, however long they are.
  r.events.deliveries.clear();
  for (std::uint64_t n = 0; n < 300; ++n)
    r.events.deliveries.push_back({.step_ns = 8'000'000, .number = 1'000'000'000 + n});
  const std::string far = mr::detail::step_chart(r);
  CAPTURE(far.substr(0, 2'500));
  CHECK(times_in(far, ">1000000") <= 3);
}

TEST_CASE("the stages' chart ends at all of a stage's time") {
  mr::run_report r = mr::report_of(statistics_of({.work_s = 40}));
  mr::stage_statistics& work = r.statistics.stages[1];
  REQUIRE(work.kind == mr::stage_kind::work);
  work.busy_ns = in_ns(30);      // of 40: four workers
  work.starved_ns = in_ns(14);
  work.blocked_ns = in_ns(2);
  const std::string stages = mr::detail::stage_chart(r);
  const auto bar = [](const char* at, const char* wide, const std::string& tip) {
    return "\" x=\"" + std::string(at) + "\" y=\"61.0\" width=\"" + wide +
           "\" height=\"14.0\"><title>workers x4 " + tip;
  };
  CAPTURE(stages);
  // The axis is from 12 to 308. The tips repeat the table next to the chart.
  CHECK(holds(stages, bar("12.0", "222.0", "busy 75.0 %")));
  CHECK(holds(stages, bar("234.0", "74.0", "starved 35.0 %")));
  CHECK(holds(stages, bar("308.0", "0.5", "blocked 5.0 %")));
}
