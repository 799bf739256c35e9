#include <millrace/millrace.hpp>
#include <millrace/report.hpp>
#include <millrace/tune/tuning.hpp>

#include "../../../copying_device.hpp"
#include "../../../eventually.hpp"
#include "../../../temporary_folder.hpp"
#include "../../io/tar_bytes.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

namespace mr = millrace;

namespace {

struct row {
  std::int32_t label;
};

using microseconds = std::chrono::microseconds;

/// Numbers whose reads last a while, asleep or on a core.
struct slow_numbers {
  using item = std::int32_t;
  microseconds read_time{0};
  std::int32_t shard_size = 200;
  bool burns = false;

  struct reader {
    std::int32_t at, end;
    microseconds read_time;
    bool burns;
    std::optional<item> next() {
      const auto until = std::chrono::steady_clock::now() + read_time;
      if (burns)
        while (std::chrono::steady_clock::now() < until) continue;
      else if (read_time.count() > 0)
        std::this_thread::sleep_until(until);
      return at < end ? std::optional(at++) : std::nullopt;
    }
  };
  std::size_t shards() const { return 4; }
  reader open(std::size_t shard, std::uint64_t) const {
    const auto first = shard_size * static_cast<std::int32_t>(shard);
    return {first, first + shard_size, read_time, burns};
  }
};

struct slow {
  microseconds read{0}, work{0}, step{0};
  std::uint64_t epochs = 1;
  std::int32_t shard_size = 200;
  unsigned io_threads = 2;
  bool readers_burn = false;
};

/// 800 samples in batches of 16, with two workers and two I/O threads.
auto slow_session(const slow& s, const mr::device& device = mr::host_device(), mr::session_options options = {}) {
  auto flow = mr::from(slow_numbers{s.read, s.shard_size, s.readers_burn}) | mr::map([work = s.work](std::int32_t n) {
                if (work.count() > 0) std::this_thread::sleep_for(work);
                return row{n};
              }) |
              mr::batch<&row::label>({.size = 16}) |
              mr::prefetch({.batches = 4}) |   // work during a pause of the trainer counts as well
              mr::to_device({.device = device});
  if (!options.threads) options.threads = 2;
  if (!options.tuning) options.io_threads = s.io_threads;
  options.epochs = s.epochs;
  if (!options.notice) options.notice = mr::quiet;
  return mr::session{std::move(flow), options};
}

mr::flow_statistics statistics_of(const slow& s, std::uint64_t batches = 1'000, mr::session_options options = {}) {
  auto run = slow_session(s, mr::host_device(), options);
  for (auto& b : run) {
    if (s.step.count() > 0) std::this_thread::sleep_for(s.step);
    if (b.step() + 1 == batches) break;
  }
  return run.statistics_after_warm_up();
}

/// The counted share of the time of a stage's threads.
double counted(const mr::flow_statistics& f, const mr::stage_statistics& s) {
  return f.share(s, s.busy_ns) + f.share(s, s.starved_ns) + f.share(s, s.blocked_ns);
}

/// Whether nearly all time is counted. Some of it is not: between a signal and the start of the woken worker.
bool sums_are_right(const mr::flow_statistics& f) {
  for (const mr::stage_statistics& s : f.stages) {
    if (s.kind == mr::stage_kind::unpack) continue;
    CHECK_MESSAGE(s.cpu_ns <= s.busy_ns, s.name);
    if (counted(f, s) <= 0.7 || counted(f, s) >= 1.1) return false;
  }
  return true;
}

/// The number before these words in a text.
double number_before(const std::string& text, const std::string& words) {
  return std::stod(text.substr(text.rfind(' ', text.find(words) - 1)));
}

}  // namespace

TEST_CASE("the metrics of a real run name the stage that sleeps longest") {
  using mr::stage_kind;
  SUBCASE("the source") {
    CHECK(at_some_scale([](int scale) {
      const auto f = statistics_of(
          {.read = microseconds(2000) * scale, .work = microseconds(200), .step = microseconds(1000)}, 50 / scale + 9);
      const mr::verdict v = mr::judge(f);
      return v.what == mr::bound_by::io && v.where == "read" && f.find(stage_kind::read)->service_ns.count() > 0 &&
             f.reads_at_once.mean_outstanding() > 1.2 && sums_are_right(f);
    }));
  }
  SUBCASE("the workers: they compute little, so they wait or are starved") {
    CHECK(at_some_scale([](int scale) {
      const auto f = statistics_of(
          {.read = microseconds(100), .work = microseconds(3000) * scale, .step = microseconds(1000)}, 50 / scale + 9);
      const mr::verdict v = mr::judge(f);
      const mr::stage_statistics& work = *f.find(stage_kind::work);
      return (v.what == mr::bound_by::cpu || v.what == mr::bound_by::cpu_starved) && v.where == "map" &&
             work.service_ns.quantile(0.5) > 2.9e6 * scale && work.cpu_ns < work.busy_ns / 2 && sums_are_right(f);
    }));
  }
  SUBCASE("the step") {
    CHECK(at_some_scale([](int scale) {
      const auto f = statistics_of(
          {.read = microseconds(50), .work = microseconds(100), .step = microseconds(12000) * scale}, 50 / scale + 9);
      const mr::stage_statistics& work = *f.find(stage_kind::work);
      return mr::judge(f).what == mr::bound_by::consumer && f.data_wait_share() < 0.2 &&
             work.blocked_ns > work.starved_ns && f.queues.at(0).mean > 1 && sums_are_right(f);
    }));
  }
}

TEST_CASE("one long part, read by one of four readers, is the limit: not the four, and more of them do not help") {
  // Four readers would have a batch every 4 ms, about as often as the step wants one; the reader of the next samples
  // has one every 16 ms, while the others read much later samples.
  CHECK(at_some_scale([](int scale) {
    const mr::flow_statistics f = statistics_of({.read = microseconds(1'000) * scale,
                                                   .step = microseconds(3'800) * scale, .shard_size = 4'000,
                                                   .io_threads = 4}, 36);
    const mr::verdict v = mr::judge(f);
    if (v.what != mr::bound_by::io || v.cause != mr::bound_cause::one_shard) return false;
    for (const mr::knob_gain& k : mr::report_of(f).gains)
      if (k.what == mr::knob::io_threads && k.gain >= 0.01) return false;
    return f.in_turn_samples > f.samples * 9 / 10 &&
           v.limits.lowest().samples_per_s == doctest::Approx(v.samples_per_s).epsilon(0.2);
  }));
  // Parts that are read in no time at once: then all four determine the speed.
  CHECK(at_some_scale([](int scale) {
    return mr::judge(statistics_of({.read = microseconds(1'000) * scale, .epochs = 6, .shard_size = 20,
                                 .io_threads = 4})).cause != mr::bound_cause::one_shard;
  }));
}

TEST_CASE("a worker that waits is not starved because readers that burn are") {
  // Long, because on a crowded machine a thread that slept also waits some milliseconds for a core.
  CHECK(at_some_scale([](int scale) {
    const slow s{.read = microseconds(300), .work = microseconds(20'000) * scale, .shard_size = 20'000,
                 .io_threads = 4, .readers_burn = true};
    mr::flow_statistics f = statistics_of(s, 7, {.threads = 1});
    const mr::stage_statistics& work = *f.find(mr::stage_kind::work);
    CHECK(f.process_cpu_ns > work.cpu_ns);
    const double asleep_ns = static_cast<double>(work.busy_ns - work.run_delay_ns) / static_cast<double>(work.items);
    f.usable_cores = 64;   // even with that many, a worker finds a core
    return 1e-6 * asleep_ns == doctest::Approx(20 * scale).epsilon(0.4) &&
           mr::judge(f).cause == mr::bound_cause::waits && mr::gains_of(f)[0].what == mr::knob::workers &&
           mr::gains_of(f)[0].gain > 0.3;
  }));
}

TEST_CASE("another thread can read metrics meanwhile, and no counter decreases") {
  auto run = slow_session({.read = microseconds(50), .work = microseconds(200)});
  std::atomic<bool> over{false};
  std::atomic<int> reads{0};
  std::thread looker([&] {
    mr::flow_statistics last = run.statistics();
    mr::run_stats before = run.stats();
    while (!over.load()) {
      const mr::flow_statistics now = run.statistics();
      const mr::run_stats stats = run.stats();
      CHECK(stats.samples >= before.samples);
      CHECK(stats.samples_read >= before.samples_read);
      CHECK(stats.worker_busy_ns >= before.worker_busy_ns);
      before = stats;
      ++reads;
      REQUIRE(now.stages.size() == last.stages.size());
      CHECK(now.samples >= last.samples);
      for (std::size_t i = 0; i < now.stages.size(); ++i) {
        CHECK(now.stages[i].busy_ns >= last.stages[i].busy_ns);
        CHECK(now.stages[i].items >= last.stages[i].items);
        CHECK(now.stages[i].service_ns.count() >= last.stages[i].service_ns.count());
      }
      last = now;
    }
  });
  std::uint64_t delivered = 0;
  bool counted = true;   // before it was delivered
  for (auto& b : run) {
    if (delivered == 0) CHECK(eventually([&] { return reads.load() > 0; }));
    delivered += b.size();
    counted = counted && run.statistics().find(mr::stage_kind::work)->items >= delivered;
  }
  CHECK(counted);
  over.store(true);
  looker.join();
  const mr::flow_statistics f = run.statistics();
  CHECK(f.batches == 50);
  CHECK(f.samples == 800);
  CHECK(f.find(mr::stage_kind::work)->items == 800);
  CHECK(f.find(mr::stage_kind::step)->service_ns.count() == 50);
  CHECK(f.find(mr::stage_kind::read)->items == 800);
  const mr::timeline t = run.events();
  CHECK(t.deliveries.size() == 50);
  CHECK(t.tracks.size() >= 4);
}

TEST_CASE("tuning opens as many workers as the step needs, closes the others, reports why, and keeps the order") {
  // The step needs a batch every 8 ms, whose work costs a worker 32 ms, and whose reads cost 6.4 ms.
  const auto tunes = [](bool too_many, int scale) {
    const slow s{.read = microseconds(400) * scale, .work = microseconds(2000) * scale,
                 .step = microseconds(8000) * scale, .epochs = 4};
    std::vector<std::string> notices;
    mr::session_options options{.threads = too_many ? 12 : 1, .io_threads = too_many ? 16U : 1U};
    options.tuning = mr::tuning({.max_workers = 12});
    options.notice = [&](const mr::notice& n) { if (n.kind == mr::notice_kind::tuning) notices.push_back(n.text); };
    auto run = slow_session(s, mr::host_device(), options);
    CHECK(run.description().find(" I/O threads (tuned: up to 12 and 32); ") != std::string::npos);
    std::int32_t next = 0;
    bool in_order = true;
    std::size_t looked_at = 0;
    for (auto& b : run) {
      for (const std::int32_t n : b.get<&row::label>().host()) in_order = in_order && n == next++ % 800;
      // Later moves of another search are reported only when it ends.
      if (std::exchange(looked_at, notices.size()) < notices.size()) {
        const mr::flow_statistics f = run.statistics();
        CHECK(f.find(mr::stage_kind::work)->concurrency == number_before(notices.back(), " workers"));
        CHECK(f.find(mr::stage_kind::read)->concurrency == number_before(notices.back(), " reads"));
      }
      std::this_thread::sleep_for(s.step);
    }
    CHECK((in_order && next == 4 * 800));
    for (const std::string& text : notices) CHECK_MESSAGE(text.find(" batches: ") != std::string::npos, text);
    if (notices.empty() || looked_at == 0) return false;
    // Work of 32 ms in each 8 ms: three are never enough, and all twelve are too many on a machine with time for them.
    if (!too_many) return number_before(notices.back(), " workers") > 3;
    return number_before(notices.front(), " %") >= 2 || number_before(notices.front(), " workers") < 12;
  };
  for (const bool too_many : {false, true}) {
    CAPTURE(too_many);
    CHECK(at_some_scale([&](int scale) { return tunes(too_many, scale); }));
  }
}

TEST_CASE("between the epochs of a loop the clock stops") {
  // A thread that waits for a core is counted until it runs, so a crowded machine needs more work in each epoch.
  CHECK(at_some_scale([](int scale) {
    const auto pause = std::chrono::milliseconds(300) * scale;
    const auto start = std::chrono::steady_clock::now();
    auto run = slow_session({.work = microseconds(100) * scale, .epochs = 2});
    for (std::uint64_t e = 0; e < 2; ++e, std::this_thread::sleep_for(pause))
      for (auto& b : run.epoch(e)) b.release();
    const mr::flow_statistics f = run.statistics();
    const std::chrono::nanoseconds running = std::chrono::steady_clock::now() - start - 2 * pause;
    CHECK(std::max(f.wall_ns, run.stats().step_ns) <= static_cast<std::uint64_t>(running.count()));
    // The pause counts neither as waiting of the workers nor as time of a stage.
    return std::ranges::all_of(f.stages, [&](const mr::stage_statistics& s) { return counted(f, s) < 1.1; });
  }));
}

TEST_CASE("a stalled run reports who waits for whom, once for each stall, and continues") {
  std::mutex mutex;
  std::vector<std::string> notices;
  mr::session_options watch;
  // Long after the workers have begun, on a crowded machine too, and long before they finish.
  watch.stalls = {.after = std::chrono::milliseconds(600)};
  watch.notice = [&](const mr::notice& n) {
    if (n.kind != mr::notice_kind::stall) return;
    const std::lock_guard lock(mutex);
    notices.push_back(n.text);
  };
  const auto received = [&] {
    const std::lock_guard lock(mutex);
    return notices;
  };
  {
    auto run = slow_session({.work = microseconds(250'000)}, mr::host_device(), watch);
    static_cast<void>(run.next());   // 16 samples on two workers: 2 s
  }
  const auto work_stall = received();
  REQUIRE(!work_stall.empty());
  CHECK(work_stall[0].starts_with("no batch for 0."));
  CHECK(work_stall[0].find("\ntrainer: ") != std::string::npos);
  CHECK(work_stall[0].find(" of 2 at work, the longest for ") != std::string::npos);
  CHECK(work_stall[0].find(" at sample ") != std::string::npos);
  CHECK(work_stall[0].find("\nread: no read in progress") != std::string::npos);
  notices.clear();
  watch.stalls.after = std::chrono::milliseconds(150);
  auto run = slow_session({.epochs = 2}, mr::host_device(), watch);
  std::uint64_t batches = 0;
  for (std::uint64_t e = 0; e < 2; ++e) {
    for (auto& b : run.epoch(e))
      if (b && ++batches == 10) std::this_thread::sleep_for(std::chrono::milliseconds(700));
    if (e == 0) std::this_thread::sleep_for(std::chrono::milliseconds(400));   // validation: no stage is late
  }
  CHECK(batches == 100);
  const auto step_stall = received();
  std::size_t away = 0;
  for (const auto& text : step_stall) away += text.find("trainer: processes batch 9, for ") != std::string::npos;
  CHECK(away == 1);
}

TEST_CASE("a step that waits for its batch's copy starves until that has arrived") {
  mr::detail::trainer_times times;
  times.start(1'000);
  const auto batch = [&](std::uint64_t ns) { times.record_return(ns, mr::detail::trainer_times::kind::batch, {}); };
  times.call(1'000);
  batch(2'000);
  times.call(2'100, 1'900);   // it existed before: 100 of step
  batch(2'200);
  times.call(3'200, 3'000);   // 200 of 1,000
  batch(3'300);
  times.call(3'400, 9'000);   // before next() was called again: the trainer did not wait for it
  batch(3'500);
  mr::flow_statistics f;
  times.add_to(f, 4'000);
  const mr::stage_statistics* const step = f.find(mr::stage_kind::step);
  REQUIRE(step);
  CHECK(step->busy_ns == 300);
  CHECK(step->starved_ns == 300 + 900);
  CHECK(times.step_ns() == 1'200);
}

TEST_CASE("copies have their own stage") {
  CHECK(at_some_scale([](int scale) {
    auto run = slow_session({}, copying_device({.latency_ns = 3'000'000ULL * static_cast<std::uint64_t>(scale)}));
    for (auto& b : run) static_cast<void>(b);
    const mr::flow_statistics f = run.statistics_after_warm_up();
    const mr::stage_statistics* const copy = f.find(mr::stage_kind::copy);
    REQUIRE(copy);
    CHECK(copy->bytes > 0);
    CHECK(copy->service_ns.quantile(0.5) > 2.9e6 * scale);
    return mr::judge(f).what == mr::bound_by::transfer;
  }));
}

TEST_CASE("decompression on I/O threads is processor time: such a run is limited by unpack, not by I/O") {
  if (!tar_test::have("bzip2")) {
    MESSAGE("skipped: no bzip2");
    return;
  }
  const temporary_folder folder;
  mr::shard_writer shards({.pattern = folder / "s-%d.tar", .max_samples = 6});
  std::string payload(std::size_t{300} << 10, '\0');
  mr::rng random({.seed = 1});
  for (int i = 0; i < 24; ++i) {
    for (char& c : payload) c = static_cast<char>('a' + random.below(20));
    shards.write("k" + std::to_string(i), {{"txt", payload}, {"cls", std::to_string(i)}});
  }
  shards.close();
  std::vector<std::string> names;
  for (int i = 0; i < 4; ++i) {
    const std::string plain = folder / ("s-" + std::to_string(i) + ".tar");
    names.push_back(plain + ".bz2");
    tar_test::save(names.back(), tar_test::through("bzip2 -c", tar_test::load(plain)));
  }
  auto run = mr::session{mr::shards(names, {.index = mr::index::off}) | mr::map([](const mr::record& r) {
                           return row{r["cls"].as<std::int32_t>()};
                         }) | mr::batch<&row::label>({.size = 2}),
                         {.epochs = 2, .threads = 1, .io_threads = 2, .notice = mr::quiet}};
  for (auto& b : run) static_cast<void>(b);
  const mr::run_report report = mr::report_of(run);
  const mr::flow_statistics& f = report.statistics;
  const mr::stage_statistics *const read = f.find(mr::stage_kind::read),
    *const unpack = f.find(mr::stage_kind::unpack);
  REQUIRE(read);
  REQUIRE(unpack);
  CHECK(unpack->busy_ns > 5 * read->busy_ns);
  CHECK(unpack->bytes > read->bytes);   // output against input
  // Which advice depends on the other programs of the machine: unit/report/verdict tests each cause.
  const mr::verdict& v = report.conclusion;
  CHECK((v.what == mr::bound_by::cpu || v.what == mr::bound_by::cpu_starved));
  CHECK(v.where == "unpack");
  CHECK(mr::text_report(report).starts_with("VERDICT  " + v.sentence()));
  mr::write_reports(report, folder / "report");
  for (const char* ending : {".txt", ".json", ".html", ".trace.json", ".predictions"})
    CHECK(std::filesystem::file_size(folder / (std::string("report") + ending)) > 100);
  mr::write_reports(report, folder / "new/report");
  CHECK(std::filesystem::file_size(folder / "new/report.txt") > 100);
  CHECK_THROWS_AS(mr::write_reports(report, folder / "report.txt/report"), mr::io_error);
}
