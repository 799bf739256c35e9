#include "../sample_statistics.hpp"

#include <millrace/report/verdict/knobs.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace mr = millrace;
using mr::knob;

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
mr::stage_statistics& stage_of(mr::flow_statistics& f, mr::stage_kind kind) {
  return *std::find_if(f.stages.begin(), f.stages.end(), [&](const auto& s) { return s.kind == kind; });
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
