#include "../sample_statistics.hpp"

#include <millrace/base/format.hpp>
#include <millrace/base/random.hpp>
#include <millrace/report/simulate/what_if.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

namespace mr = millrace;
using mr::bound_by;
using mr::bound_cause;

namespace {

mr::stage_statistics& stage_of(mr::flow_statistics& f, mr::stage_kind kind) {
  return *std::find_if(f.stages.begin(), f.stages.end(), [&](const auto& s) { return s.kind == kind; });
}
const mr::knob_gain& gain_of(const std::vector<mr::knob_gain>& all, mr::knob what) {
  return *std::find_if(all.begin(), all.end(), [&](const auto& k) { return k.what == what; });
}

}  // namespace

TEST_CASE("the busiest stage is the verdict, with the margin to the next") {
  const auto sentence = [](const mr::flow_statistics& f) { return mr::judge(f).sentence(); };
  CHECK(sentence(statistics_of({.step_s = 10})) ==
        "Consumer-bound: your step is the limit; loading could be 4.0 times as fast");
  CHECK(sentence(statistics_of({.work_s = 4, .step_s = 68.7})) ==
        "Consumer-bound: your step is the limit; loading could be 27 times as fast");
  CHECK(sentence(statistics_of({.copy_s = 10})) ==
        "Transfer-bound: the copy to the device is the limit; reading could be 4.0 times as fast");
  CHECK(sentence(statistics_of({.read_s = 20})) ==
        "I/O-bound: reading is the limit; the workers could be 5.0 times as fast");
  CHECK(sentence(statistics_of({.read_s = 2, .unpack_s = 18, .step_s = 4})) ==
        "CPU-bound in unpack: unpacking is the limit; your step could be 2.5 times as fast");
  const mr::verdict cpu = mr::judge(statistics_of({.work_s = 40}));
  CHECK(cpu.sentence() == "CPU-bound in decode: the workers are the limit; reading could be 4.0 times as fast");
  CHECK(cpu.agree);
  CHECK(cpu.samples_per_s == doctest::Approx(500));
  CHECK(cpu.saturation == doctest::Approx(1));
  const mr::verdict io = mr::judge(statistics_of({.read_s = 20}));
  CHECK(io.what == bound_by::io);
  CHECK(io.where == "read");
  CHECK(io.next == "workers");
}

TEST_CASE("the costliest part of a fused stage is named") {
  mr::flow_statistics f = statistics_of({.work_s = 40});
  std::swap(stage_of(f, mr::stage_kind::work).phases[0].busy_ns,
            stage_of(f, mr::stage_kind::work).phases[1].busy_ns);
  CHECK(mr::judge(f).where == "resize");
}

TEST_CASE("two limits within 10 % are balanced, whichever two") {
  const mr::verdict v = mr::judge(statistics_of({.work_s = 38, .step_s = 10}));
  CHECK(v.what == bound_by::balanced);
  CHECK(v.sentence() == "Balanced: your step and the workers are within 10 % of each other");
  CHECK(v.where == "step");
  CHECK(v.next == "workers");
  CHECK(mr::judge(statistics_of({.work_s = 35, .step_s = 10})).what == bound_by::consumer);
}

TEST_CASE("decompression on I/O threads is processor time, not I/O") {
  const mr::verdict v = mr::judge(statistics_of({.read_s = 2, .unpack_s = 18}));
  CHECK(v.what == bound_by::cpu);
  CHECK(v.where == "unpack");
  CHECK(v.advice.starts_with("Decompression runs on the I/O threads"));
  // Reading is most of it: then the bottleneck is still I/O.
  CHECK(mr::judge(statistics_of({.read_s = 18, .unpack_s = 2})).what == bound_by::io);
}

TEST_CASE("bandwidth, latency and the page cache are distinguished as causes of slow I/O") {
  mr::flow_statistics f = statistics_of({.read_s = 20});   // 500 MB in 10 s
  CHECK(mr::judge(f).cause == bound_cause::none);    // one level of concurrency is not enough
  f.storage_ceiling_bytes_per_s = 55e6;
  CHECK(mr::judge(f).cause == bound_cause::bandwidth);
  f.storage_ceiling_bytes_per_s = 500e6;
  CHECK(mr::judge(f).cause == bound_cause::latency);
  f.storage_bytes = 20'000'000;
  CHECK(mr::judge(f).cause == bound_cause::page_cache);

  // Without a ceiling, the verdict uses the rates of one and of two reads at a time.
  f = statistics_of({.read_s = 20});
  f.reads_at_once.add(1, {.ns = in_ns(1), .reads = 500, .read_ns = in_ns(1)});   // alone in half the time: one pipe
  CHECK(mr::judge(f).cause == bound_cause::bandwidth);
  f = statistics_of({.read_s = 20});
  f.reads_at_once.add(1, {.ns = in_ns(2), .reads = 500, .read_ns = in_ns(2)});   // alone not faster: slow answers
  CHECK(mr::judge(f).cause == bound_cause::latency);
}

TEST_CASE("workers without cores are starved, by a quota or by neighbors; workers that wait are neither") {
  mr::flow_statistics f = statistics_of({.work_s = 40});
  mr::stage_statistics& work = stage_of(f, mr::stage_kind::work);
  work.cpu_ns = in_ns(39.5);
  CHECK(mr::judge(f).what == bound_by::cpu);
  work.cpu_ns = in_ns(24);
  CHECK(mr::judge(f).what == bound_by::cpu);
  CHECK(mr::judge(f).cause == bound_cause::waits);
  work.run_delay_ns = in_ns(15);
  CHECK(mr::judge(f).what == bound_by::cpu_starved);
  CHECK(mr::judge(f).cause == bound_cause::neighbors);
  f.throttled_ns = in_ns(5);
  CHECK(mr::judge(f).cause == bound_cause::quota);
  // More workers do not help then.
  CHECK(gain_of(mr::gains_of(f), mr::knob::workers).gain == doctest::Approx(0));
  CHECK(gain_of(mr::gains_of(f), mr::knob::workers).remark == "the quota allows no more processor time");
  // Only if the workers limit the run.
  f = statistics_of({.work_s = 8, .step_s = 10});
  stage_of(f, mr::stage_kind::work).cpu_ns = in_ns(4);
  f.throttled_ns = in_ns(5);
  CHECK(mr::judge(f).what == bound_by::consumer);
  // A step that is nearly as slow may wait for them or not: if not, they cost nothing.
  for (const double step_s : {9.3, 9.9}) {
    f = statistics_of({.work_s = 40, .step_s = step_s});
    stage_of(f, mr::stage_kind::work).cpu_ns = in_ns(20);
    stage_of(f, mr::stage_kind::work).run_delay_ns = in_ns(20);
    CHECK(mr::judge(f).margin < 1.10);
    CHECK(mr::judge(f).what == (step_s < 9.5 ? bound_by::cpu_starved : bound_by::balanced));
  }
}

TEST_CASE("the time that other threads waited for a core does not count for the workers") {
  // One worker that waits for something else, and four readers that burn two cores.
  mr::flow_statistics f = statistics_of({.read_s = 8, .work_s = 10});
  mr::stage_statistics& work = stage_of(f, mr::stage_kind::work);
  stage_of(f, mr::stage_kind::read).concurrency = 4;
  work.concurrency = 1;
  work.cpu_ns = in_ns(0.2);
  work.run_delay_ns = in_ns(0.5);
  f.usable_cores = 2;
  f.process_cpu_ns = in_ns(20);
  f.run_delay_ns = in_ns(21);
  CHECK(mr::judge(f).what == bound_by::cpu);
  CHECK(mr::judge(f).cause == bound_cause::waits);
  CHECK(gain_of(mr::gains_of(f), mr::knob::workers).gain == doctest::Approx(1));
}

TEST_CASE("workers whose cores the process's other threads use are starved by no neighbors; more get a share") {
  // One worker and four readers that compute: each of the five has two fifths of a core.
  mr::flow_statistics f = statistics_of({.read_s = 8, .work_s = 10});
  mr::stage_statistics& work = stage_of(f, mr::stage_kind::work);
  stage_of(f, mr::stage_kind::read).concurrency = 4;
  work.concurrency = 1;
  work.cpu_ns = in_ns(4);
  work.run_delay_ns = in_ns(6);
  f.usable_cores = 2;
  f.process_cpu_ns = in_ns(20);
  f.run_delay_ns = in_ns(30);
  CHECK(mr::judge(f).sentence().starts_with("CPU-starved in decode (own threads)"));
  CHECK(mr::judge(f).advice.starts_with("The process runs more threads than there are cores"));
  const auto gains = mr::gains_of(f);
  CHECK(gain_of(gains, mr::knob::workers).gain == doctest::Approx(2 * 5.0 / 6 - 1));   // then two sixths each
  CHECK(gain_of(gains, mr::knob::workers).settings.workers == 2);
  // The same share, but two threads of others have the rest, and no thread of this process waits.
  f.process_cpu_ns = in_ns(6.7);
  f.run_delay_ns = in_ns(6);
  CHECK(mr::judge(f).cause == bound_cause::neighbors);
  // More workers than cores crowd themselves.
  work.concurrency = 8;
  work.busy_ns = in_ns(80);
  work.cpu_ns = in_ns(19.8);
  work.run_delay_ns = in_ns(60);
  f.process_cpu_ns = in_ns(20);
  f.run_delay_ns = in_ns(61);
  CHECK(mr::judge(f).cause == bound_cause::own_threads);
  CHECK(mr::judge(f).advice == "There are more workers than cores: use 2 workers at most, or more cores");
  CHECK(gain_of(mr::gains_of(f), mr::knob::workers).gain == doctest::Approx(0));
}

TEST_CASE("the speed of readers that prefetch later shards does not count for the shard that all wait for") {
  // Four readers, busy all the time: the one at the current shard forwards all of its samples at once.
  mr::flow_statistics f = statistics_of({.read_s = 40, .work_s = 8, .step_s = 2.2});
  mr::stage_statistics& read = stage_of(f, mr::stage_kind::read);
  read.concurrency = 4;
  read.items = 4 * f.samples;
  f.in_turn_ns = in_ns(10);
  f.in_turn_samples = f.passed_on_samples = f.samples;
  const mr::verdict v = mr::judge(f);
  CHECK(v.what == bound_by::io);
  CHECK(v.cause == bound_cause::one_shard);
  CHECK(v.agree);
  CHECK(v.limits.lowest().samples_per_s == doctest::Approx(500));
  CHECK(v.margin == doctest::Approx(10 / 2.2));
  const auto gains = mr::gains_of(f);
  CHECK(gain_of(gains, mr::knob::io_threads).gain == doctest::Approx(0));
  CHECK_FALSE(gain_of(gains, mr::knob::io_threads).at_most);
  CHECK(gain_of(gains, mr::knob::storage_speed).gain == doctest::Approx(1));
  CHECK(mr::what_if(f, {.io_threads = 8}).gain == doctest::Approx(0).epsilon(0.05));
  // The others wait for space instead of data.
  read.busy_ns = in_ns(10);
  read.blocked_ns = in_ns(30);
  read.items = f.samples;
  f.reads_at_once = {};
  f.reads_at_once.add(1, {.ns = in_ns(10), .reads = 5'000, .read_ns = in_ns(10), .bytes = 500'000'000});
  CHECK(mr::judge(f).cause == bound_cause::one_shard);
  CHECK(mr::judge(f).limits.lowest().samples_per_s == doctest::Approx(500));
  CHECK(gain_of(mr::gains_of(f), mr::knob::io_threads).gain == doctest::Approx(0));
  // A quarter of the samples was forwarded so, the rest had been prefetched: the readers help each other.
  f = statistics_of({.read_s = 40, .work_s = 8, .step_s = 2.2});
  stage_of(f, mr::stage_kind::read).concurrency = 4;
  f.passed_on_samples = f.samples;
  f.in_turn_ns = in_ns(10);
  f.in_turn_samples = f.samples / 4;
  CHECK(mr::judge(f).cause != bound_cause::one_shard);
  CHECK(gain_of(mr::gains_of(f), mr::knob::io_threads).gain > 0.5);
  // Most of that one thread's time is decompression.
  f = statistics_of({.read_s = 8, .unpack_s = 32, .work_s = 8, .step_s = 2.2});
  stage_of(f, mr::stage_kind::read).concurrency = stage_of(f, mr::stage_kind::unpack).concurrency = 4;
  stage_of(f, mr::stage_kind::read).items = 4 * f.samples;
  f.in_turn_ns = in_ns(10);
  f.in_turn_samples = f.passed_on_samples = f.samples;
  CHECK(mr::judge(f).what == bound_by::cpu);
  CHECK(mr::judge(f).sentence().starts_with("CPU-bound in unpack (one shard at a time)"));
  CHECK(mr::judge(f).advice.starts_with("One thread unpacks one shard at a time"));
}

TEST_CASE("too few measurements lead to no verdict, and to a message") {
  CHECK(mr::judge({}).what == bound_by::unknown);
  mr::flow_statistics f = statistics_of({.step_s = 10});
  f.batches = 4;
  CHECK(mr::judge(f).sentence() == "No verdict: only 4 batches were measured: expected at least 5");
}

TEST_CASE("when limits and starvation disagree, a busy stage wins, and an idle one does not") {
  // The trainer starves, the workers never: but they were counted as busy only half of their time.
  mr::flow_statistics f = statistics_of({.work_s = 20, .step_s = 6});
  stage_of(f, mr::stage_kind::work).starved_ns = 0;
  const mr::verdict walk = mr::judge(f);
  CHECK_FALSE(walk.agree);
  CHECK(walk.what == bound_by::cpu);
  // Every stage starves a little, and the step was busy 9 s of 10.
  f = statistics_of({.step_s = 9});
  const mr::verdict limits = mr::judge(f);
  CHECK_FALSE(limits.agree);
  CHECK(limits.what == bound_by::consumer);
}

TEST_CASE("the device's own gaps count if a trainer that runs ahead hides them from the host's clock") {
  // the trainer only queues work, and waits in next()
  mr::flow_statistics f = statistics_of({.work_s = 30, .step_s = 1});
  CHECK(mr::judge(f).what != bound_by::consumer);
  f.device_gap_ns = in_ns(0.1);
  CHECK(mr::judge(f).what == bound_by::consumer);
  CHECK(mr::judge(f).data_wait_share == doctest::Approx(0.01));
}

TEST_CASE("gains end at the next limit, and name it") {
  mr::flow_statistics f = statistics_of({.read_s = 4, .work_s = 40, .copy_s = 1, .step_s = 9});
  f.usable_cores = 16;
  const auto gains = mr::gains_of(f);
  const mr::knob_gain& one = gain_of(gains, mr::knob::workers);
  CHECK(one.change == "4 -> 5 workers");
  CHECK(one.gain == doctest::Approx(10.0 / 9 - 1));   // 1.25 would be the workers', the step allows 1.11
  CHECK(one.next == "step");
  CHECK(gain_of(gains, mr::knob::storage_speed).gain == doctest::Approx(0));
  CHECK(gain_of(gains, mr::knob::storage_speed).next == "workers");
  CHECK(gain_of(gains, mr::knob::prefetch).gain == doctest::Approx(0));
  f.usable_cores = 4;
  CHECK(gain_of(mr::gains_of(f), mr::knob::workers).gain == doctest::Approx(0));
  CHECK(gain_of(mr::gains_of(f), mr::knob::workers).remark == "all 4 usable cores already have a worker");
}

TEST_CASE("halving the costliest part gains half of that part alone") {
  const auto gains = mr::gains_of(statistics_of({.work_s = 40, .step_s = 2}));
  const mr::knob_gain& half = gain_of(gains, mr::knob::work);
  CHECK(half.change == "decode at half the cost");
  CHECK(half.gain == doctest::Approx(1 / 0.65 - 1));   // 70 % of the work became 35 %
}

TEST_CASE("reads that do not slow each other down gain from more threads, a full pipe does not") {
  mr::flow_statistics slow_answers = statistics_of({.read_s = 20}), full_pipe = slow_answers;
  slow_answers.reads_at_once.add(1, {.ns = in_ns(2), .reads = 500, .read_ns = in_ns(2)});
  full_pipe.reads_at_once.add(1, {.ns = in_ns(1), .reads = 500, .read_ns = in_ns(1)});
  CHECK(*slow_answers.reads_at_once.contention() == doctest::Approx(0));
  CHECK(*full_pipe.reads_at_once.contention() == doctest::Approx(1));
  CHECK(gain_of(mr::gains_of(slow_answers), mr::knob::io_threads).gain > 0.8);
  CHECK(gain_of(mr::gains_of(full_pipe), mr::knob::io_threads).gain == doctest::Approx(0));
  // It is unknown which of the two: a bound, which is reported as one.
  const auto unknown = mr::gains_of(statistics_of({.read_s = 20}));
  CHECK(gain_of(unknown, mr::knob::io_threads).at_most);
  CHECK(gain_of(unknown, mr::knob::io_threads).gain == doctest::Approx(1));
}

TEST_CASE("a disk that serves reads one after the other is a full pipe, one that answers late is not") {
  // Tick by tick, with a model other than the fitted one: answers overlap, then the bytes are transferred one at a
  // time. Readers pause in between, as for want of credit.
  constexpr int readers = 6, transfer_or_answer = 40;
  for (const bool one_pipe : {false, true}) {
    CAPTURE(one_pipe);
    const int answer = one_pipe ? 2 : transfer_or_answer, transfer = one_pipe ? transfer_or_answer : 2;
    mr::rng random({.seed = 11});
    struct reader {
      int pause = 0, answer = 0, transfer = 0, duration = 0, concurrent_sum = 0;
    };
    std::vector<reader> all(readers);
    std::vector<std::size_t> line;   // the first waiting reader has the pipe
    mr::read_levels levels;
    for (int tick = 0; tick < 400'000; ++tick) {
      int outstanding = 0;
      for (reader& r : all) {
        if (r.answer == 0 && r.transfer == 0 && r.pause-- == 0) r.answer = answer;
        outstanding += r.answer > 0 || r.transfer > 0;
      }
      levels.add(static_cast<std::size_t>(outstanding), {.ns = 1'000});
      for (std::size_t i = 0; i < readers; ++i) {
        reader& r = all[i];
        if (r.answer == 0 && r.transfer == 0) continue;
        ++r.duration;
        r.concurrent_sum += outstanding;
        if (r.answer > 0 && --r.answer == 0) {
          r.transfer = transfer;
          line.push_back(i);
        }
      }
      if (line.empty() || --all[line.front()].transfer > 0) continue;
      reader& r = all[line.front()];
      line.erase(line.begin());
      levels.add(static_cast<std::size_t>((r.concurrent_sum + r.duration / 2) / r.duration),
                 {.reads = 1, .read_ns = 1'000 * static_cast<std::uint64_t>(r.duration), .bytes = 100'000});
      r = {.pause = static_cast<int>(random.below(one_pipe ? 600 : 150))};
    }
    REQUIRE(levels.contention());
    MESSAGE(std::string(one_pipe ? "one pipe: " : "late answers: ") << *levels.contention());
    CHECK((*levels.contention() >= 0.25) == one_pipe);
  }
}

TEST_CASE("a window is the difference between two times, with the later settings") {
  mr::flow_statistics before = statistics_of({.work_s = 4}), now = statistics_of({.work_s = 40});
  now.wall_ns = in_ns(30);
  now.batches = 400;
  now.host_slots = 6;
  now.stages[0].service_ns.add(100, 7);
  before.stages[0].service_ns.add(100, 3);
  const mr::flow_statistics window = now - before;
  CHECK(window.wall_ns == in_ns(20));
  CHECK(window.batches == 300);
  CHECK(window.warm_up_batches == 100);
  CHECK(window.host_slots == 6);
  CHECK(window.find(mr::stage_kind::work)->busy_ns == in_ns(36));
  CHECK(window.find(mr::stage_kind::work)->phases[0].busy_ns == in_ns(28) - in_ns(2.8));
  CHECK(window.stages[0].service_ns.count() == 4);
  CHECK(window.reads_at_once.busy_ns() == 0);
  // A part whose share shrank: the others are at most the total.
  before.stages[1].phases = {{"decode", in_ns(1), {}}, {"resize", in_ns(3), {}}};
  now.stages[1].phases = {{"decode", in_ns(38), {}}, {"resize", in_ns(2), {}}};
  const std::vector<mr::phase_statistics> phases = (now - before).stages[1].phases;
  CHECK(static_cast<double>(phases[0].busy_ns) == doctest::Approx(36e9));
  CHECK(phases[1].busy_ns == 0);
}

TEST_CASE("metrics are printed readably") {
  using namespace mr::detail;
  CHECK(grouped(21'400) == "21 400");
  CHECK(grouped(-1'234'567) == "-1 234 567");
  CHECK(grouped(999) == "999");
  CHECK(time_text(1.88e6) == "1.88 ms");
  CHECK(time_text(999'999) == "1.00 ms");
  CHECK(bytes_text(6.79e8) == "679 MB");
  CHECK(percent(0.384) == "38.4 %");
  CHECK(gain_text(-0.067) == "-6.7 %");
  CHECK(times_as_fast(6.87) == "6.9 times as fast");
  CHECK(times_as_fast(12.5) == "12 times as fast");
  CHECK(times_as_fast(std::numeric_limits<double>::infinity()) == "over 100 times as fast");
}
