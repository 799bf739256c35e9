// The search for just enough workers over simulated set-ups: no thread, no clock, the same result every time.
#include <millrace/report/simulate/what_if.hpp>
#include <millrace/run/memory_budget.hpp>
#include <millrace/tune/tuning.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <string>

namespace mr = millrace;

namespace {

constexpr mr::detail::concurrency_counts most{.workers = 16, .reads = 32};

/// Between half and one and a half times as long, each equally often.
mr::detail::empirical_distribution around(double mean_ns) {
  mr::distribution d;
  for (int i = 0; i < 40; ++i) d.add(static_cast<std::uint64_t>(mean_ns * (0.5 + i / 40.0)));
  return mr::detail::empirical_distribution(d).with_mean(mean_ns);
}

struct set_up {
  double step_ms = 0, work_ms = 0, read_ms = 0;   // of a batch, a sample, a read of two
  double contention = 0;
  std::size_t batch = 64;
  double copy_ms = 0;

  mr::flow_statistics window(const mr::detail::concurrency_counts& open, std::uint64_t seed,
                                  std::uint64_t batches = 20) const {
    mr::detail::pipeline_model m;
    m.workers = open.workers;
    m.io_threads = open.reads;
    m.batch_samples = batch;
    m.read_ahead_bytes = std::size_t{64} << 20;
    m.samples_per_read = 2;
    m.contention = contention;
    m.read_ns = around(1e6 * read_ms);
    m.work_ns = around(1e6 * work_ms);
    m.step_ns = around(1e6 * step_ms);
    if (copy_ms > 0) {
      m.device_slots = 3;
      m.copy_ns = around(1e6 * copy_ms);
    }
    m.warm_up_batches = 12;
    m.batches = batches;
    m.seed = seed;
    return mr::detail::simulate(m).statistics;
  }
  double wait(const mr::detail::concurrency_counts& open) const { return window(open, 901, 60).data_wait_share(); }
  double rate(const mr::detail::concurrency_counts& open) const { return window(open, 903).samples_per_s(); }
};

struct search_result {
  std::vector<mr::detail::tuning_decision> decisions;
  mr::detail::concurrency_counts end;
  std::size_t moves = 0;   // from first to last window
};

search_result search_for(const set_up& s, const mr::detail::concurrency_counts& start, int windows = 12) {
  mr::detail::tuning_search search({.open = start, .max = most});
  search_result f;
  for (int i = 0; i < windows; ++i) {
    const mr::detail::concurrency_counts was = search.open();
    if (auto d = search.evaluate(mr::detail::tuning_window_of(s.window(was, 100 + static_cast<std::uint64_t>(i)))))
      f.decisions.push_back(std::move(*d));
    f.moves += search.open() != was;
  }
  f.end = search.open();
  return f;
}

/// The number of times that a rising count fell, or vice versa.
std::size_t turns(const search_result& f, std::size_t mr::detail::concurrency_counts::*which) {
  std::size_t count = 0;
  int direction = 0;
  for (const auto& d : f.decisions) {
    const int now = d.to.*which > d.from.*which ? 1 : d.to.*which < d.from.*which ? -1 : 0;
    if (now != 0) count += std::exchange(direction, now) == -now;
  }
  return count;
}

}  // namespace

TEST_CASE("just enough workers are found from any start, in at most five moves, then the search rests") {
  int all = 0, near_the_limit = 0;
  for (const double step_ms : {2.0, 10.0, 40.0})
    for (const double work_ms : {0.02, 0.5, 2.0})
      for (const double read_ms : {0.05, 1.0, 4.0})
        for (const double contention : {0.0, 0.3, 1.0})
          for (const auto& start : {mr::detail::concurrency_counts{1, 1}, mr::detail::concurrency_counts{4, 4}, most}) {
            const set_up s{.step_ms = step_ms, .work_ms = work_ms, .read_ms = read_ms, .contention = contention};
            const search_result f = search_for(s, start);
            CAPTURE(step_ms);
            CAPTURE(work_ms);
            CAPTURE(read_ms);
            CAPTURE(contention);
            CAPTURE(start.workers);
            CAPTURE(f.end.workers);
            CAPTURE(f.end.reads);
            std::string log;
            for (const auto& d : f.decisions) log += d.text() + "\n";
            CAPTURE(log);
            CHECK(f.moves <= 5);
            CHECK(f.decisions.back().settled);
            CHECK(turns(f, &mr::detail::concurrency_counts::workers) <= 3);
            CHECK(turns(f, &mr::detail::concurrency_counts::reads) <= 3);
            ++all;
            if (s.wait(most) < 0.015) {
              // Reads that others slow down are not undone on suspicion; a limit that is met exactly may be missed.
              const double ends_at = s.wait(f.end);
              CHECK(ends_at < 0.03);
              near_the_limit += ends_at >= 0.02;
              const std::size_t fewer = f.end.workers - std::max<std::size_t>(1, f.end.workers / 8);
              if (fewer > 1) CHECK(s.wait({fewer - 1, most.reads}) >= 0.02);
              if (contention == 0 && f.end.reads > 3) CHECK(s.wait({most.workers, f.end.reads * 7 / 8 - 2}) >= 0.02);
            } else {
              CHECK(s.rate(f.end) > 0.9 * s.rate(most));
            }
          }
  CHECK(all == 243);
  CHECK(near_the_limit <= all / 20);
}

TEST_CASE("settings that are not tuned are the limit: no more workers than it needs") {
  const set_up s{.step_ms = 2, .work_ms = 0.5, .read_ms = 1, .copy_ms = 10};
  const search_result f = search_for(s, most);
  CHECK(f.end.workers <= 4);
  CHECK(f.end.reads <= 4);
  CHECK(f.decisions.back().why.find("copy is the limit") != std::string::npos);
  CHECK(s.rate(f.end) > 0.95 * s.rate(most));
}

TEST_CASE("a search that has ended restarts when the work has changed, and not before") {
  mr::detail::tuning_search search({.open = {.workers = 2, .reads = 4}, .max = most});
  const set_up before{.step_ms = 20, .work_ms = 1, .read_ms = 0.5}, after{.step_ms = 20, .work_ms = 3, .read_ms = 0.5};
  std::uint64_t seed = 0;
  const auto evaluate = [&](const set_up& s) {
    return search.evaluate(mr::detail::tuning_window_of(s.window(search.open(), ++seed)));
  };
  for (int i = 0; i < 6; ++i) evaluate(before);
  CHECK(search.settled());
  const std::size_t workers = search.open().workers;
  CHECK(workers == 4);   // 64 samples of 1 ms in 20 ms
  for (int i = 0; i < 10; ++i) CHECK_FALSE(evaluate(before));
  CHECK_FALSE(evaluate(after));
  CHECK_FALSE(evaluate(after));
  for (int i = 0; i < 6; ++i) evaluate(after);
  CHECK(search.settled());
  CHECK(search.open().workers >= 10);   // 64 of 3 ms
  CHECK(search.open().workers <= 12);
  for (int i = 0; i < 6; ++i) evaluate(before);
  CHECK(search.open().workers == workers);
}

TEST_CASE("one window of waiting without a cause is not a reason to move, two are one for one more worker") {
  mr::detail::tuning_window w{.data_wait = 0.3, .rate = 1'000, .read_rate = 1'000, .step_rate = 1'000, .work_s = 3.5e-3,
                      .all_work_s = 3.5e-3, .reads = true, .reading_s = 1e-4, .open = {4, 4}};
  mr::detail::tuning_search search({.open = w.open, .max = most});
  CHECK_FALSE(search.evaluate(w));
  const auto d = search.evaluate(w);
  REQUIRE(d);
  CHECK(d->to == mr::detail::concurrency_counts{5, 4});
  CHECK(d->text().starts_with("tuning after 0 batches: 4 -> 5 workers, 4 reads; data wait 30.0 %: for an unknown"));
  w.work_s = w.all_work_s = 1e-4;   // no stage is near a limit: more workers would not help
  mr::detail::tuning_search idle({.open = w.open, .max = most});
  CHECK_FALSE(idle.evaluate(w));
  CHECK(idle.evaluate(w)->settled);
}

TEST_CASE("workers that gained nothing are released and not requested again") {
  // Workers that wait for each other: twice as many, each half as fast.
  const auto window = [](std::size_t workers) {
    const double work_s = static_cast<double>(workers) / 500;
    return mr::detail::tuning_window{.data_wait = 0.5, .rate = 500, .read_rate = 500, .step_rate = 1'000,
                                     .work_s = work_s,
                             .all_work_s = work_s, .reads = true, .reading_s = 1e-4, .open = {workers, 1}};
  };
  mr::detail::tuning_search search({.open = {.workers = 4, .reads = 1}, .max = most});
  const auto up = search.evaluate(window(4));
  REQUIRE(up);
  CHECK(up->to.workers > 4);
  const auto back = search.evaluate(window(up->to.workers));
  REQUIRE(back);
  CHECK(back->to.workers == 4);
  for (int i = 0; i < 20; ++i) {
    const auto d = search.evaluate(window(search.open().workers));
    if (d) CHECK(d->settled);
    CHECK(search.open().workers == 4);
  }
}

TEST_CASE("reads stay unchanged in a window that read next to nothing") {
  mr::detail::tuning_window w{.data_wait = 0, .rate = 1'000, .step_rate = 1'000, .work_s = 3.5e-3, .all_work_s = 3.5e-3,
                      .open = {4, 8}};
  mr::detail::tuning_search search({.open = w.open, .max = most});
  const auto d = search.evaluate(w);
  REQUIRE(d);
  CHECK(d->settled);
  CHECK(d->to == w.open);
}

TEST_CASE("the reads at a time are limited by the budget, and by half of the read-ahead") {
  mr::detail::memory_budget m{.budget_bytes = 10'000'000, .slot_bytes = 1'000'000, .host_slots = 4,
                      .read_ahead_bytes = 4'000'000, .chunk_bytes = 262'144, .chunk_samples = 64,
                      .sample_bytes = 100'000};
  CHECK(m.max_reads() == 5);   // of 262,144 bytes and a sample, in 2 MB
  m.budget_bytes = 9'000'000;
  CHECK(m.max_reads() == 2);   // in the 1 MB that is left
  m.budget_bytes = 8'000'000;
  CHECK(m.max_reads() == 0);
  m.budget_bytes = 10'000'000;
  m.sample_bytes = 1'000;
  CHECK(m.max_reads() == 31);   // of 64 samples
}

TEST_CASE("options of tuning() below their minimum are errors that name the option and the value") {
  const auto message_of = [](const mr::tuning_options& o) {
    try {
      mr::tuning(o);
    } catch (const mr::setup_error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(message_of({}).empty());
  CHECK(message_of({.max_workers = 0}).find("tuning_options::max_workers is 0, expected at least 1") !=
        std::string::npos);
  CHECK(message_of({.max_reads = 0}).find("tuning_options::max_reads is 0, expected at least 1") !=
        std::string::npos);
  CHECK(message_of({.data_wait = -0.5}).find("tuning_options::data_wait is -0.50, expected a share above 0") !=
        std::string::npos);
  CHECK_FALSE(message_of({.data_wait = std::numeric_limits<double>::quiet_NaN()}).empty());
}
