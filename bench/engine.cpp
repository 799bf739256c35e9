// engine: the cost of the engine: per sample, with a full ring, to start, and to leave at any moment
#include "../tests/copying_device.hpp"
#include "harness.hpp"
#include "threads.hpp"

#include <millrace/millrace.hpp>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

namespace mr = millrace;

namespace {

struct row {
  std::int64_t number;
};

/// A source of increasing numbers whose reads may be slow.
struct numbers {
  using item = std::int64_t;
  std::int64_t count;
  std::chrono::microseconds read_time{0};
  std::size_t files = 1;

  struct reader {
    std::int64_t at, end;
    std::chrono::microseconds read_time;
    std::optional<item> next() {
      if (read_time.count() > 0) std::this_thread::sleep_for(read_time);
      return at < end ? std::optional(at++) : std::nullopt;
    }
  };
  std::size_t shards() const { return files; }
  reader open(std::size_t shard, std::uint64_t) const {
    const auto first = static_cast<std::int64_t>(shard) * count;
    return {first, first + count, read_time};
  }
};

row as_row(std::int64_t n) { return {n}; }

void spin(std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {}
}

auto empty_flow(std::size_t batch) {
  return mr::from(numbers{.count = 1'000'000}) | mr::map(as_row) | mr::batch<&row::number>({.size = batch});
}

// ---- cost per sample ----

struct cost {
  double all_ns = 0, workers_ns = 0, reading_ns = 0, trainer_ns = 0, samples_per_s = 0;
};

cost empty_stage_cost(std::size_t batch, double seconds) {
  mr::session run{empty_flow(batch), {.epochs = mr::endless, .threads = 1, .notice = mr::quiet}};
  const double start = bench::now().wall_s;
  std::map<int, bench::thread_times> threads;
  bench::clocks before;
  std::uint64_t samples = 0, sum = 0;
  bool steady = false;
  for (auto& b : run) {
    sum += static_cast<std::uint64_t>(b.get<&row::number>().host()[0]);
    const double at = bench::seconds_of(CLOCK_MONOTONIC);   // the process's CPU time would cost a system call
    if (!steady && at - start > 0.3) {
      steady = true;
      threads = bench::threads_now();
      before = bench::now();
    } else if (steady) {
      samples += b.size();
      if (at - before.wall_s > seconds) break;
    }
  }
  const bench::clocks spent = bench::now() - before;
  const auto n = static_cast<double>(samples);
  const bench::session_times by_thread = bench::session_times_since(threads);
  const cost c{.all_ns = spent.cpu_s / n * 1e9,
               .workers_ns = by_thread.workers_ns / n,
               .reading_ns = by_thread.reading_ns / n,
               .trainer_ns = by_thread.trainer_ns / n,
               .samples_per_s = n / spent.wall_s};
  if (sum == 1) std::printf("never\n");   // keeps the reads of the batches
  return c;
}

void measure_empty_stage(bench::harness& run) {
  std::printf("\nan empty stage: integers -> map -> batch of one i64 column, one worker (CPU ns per sample)\n");
  const int repeats = run.quick() ? 3 : 5;
  const std::vector<std::size_t> sizes = run.quick() ? std::vector<std::size_t>{256}
                                                     : std::vector<std::size_t>{64, 256, 1024};
  std::map<std::size_t, std::vector<cost>> costs;
  for (int i = 0; i < repeats; ++i)
    for (const std::size_t size : sizes) costs[size].push_back(empty_stage_cost(size, run.quick() ? 1.5 : 5));
  for (const auto& [size, all] : costs) {
    const auto column = [&all = all](double cost::* which) {
      std::vector<double> values;
      for (const auto& c : all) values.push_back(c.*which);
      return values;
    };
    std::printf("  batch %4zu: all %s; worker %s, I/O threads %s, trainer %s; %.2f million/s\n", size,
                bench::spread(column(&cost::all_ns)).c_str(), bench::spread(column(&cost::workers_ns)).c_str(),
                bench::spread(column(&cost::reading_ns)).c_str(), bench::spread(column(&cost::trainer_ns)).c_str(),
                bench::median(column(&cost::samples_per_s)) / 1e6);
    const std::string name = "empty_stage_cpu_batch_" + std::to_string(size);
    run.result(name, bench::median(column(&cost::all_ns)), "ns/sample",
               size == 256 ? bench::at_most(100) : bench::goal{});
  }
}

// ---- full ring ----

void measure_full_ring(bench::harness& run) {
  std::printf("\na full ring while the trainer sleeps (CPU ms per second of the process)\n");
  std::vector<double> costs;
  for (int i = 0; i < (run.quick() ? 2 : 5); ++i) {
    mr::session session{empty_flow(256), {.epochs = mr::endless, .notice = mr::quiet}};
    int batches = 0;
    for (auto& b : session)
      if (b && ++batches == 100) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    const bench::clocks before = bench::now();
    std::this_thread::sleep_for(std::chrono::seconds(run.quick() ? 2 : 4));
    const bench::clocks spent = bench::now() - before;
    costs.push_back(1e3 * spent.cpu_s / spent.wall_s);
  }
  run.result("full_ring_cpu", bench::median(costs), "ms/s", bench::at_most(1));
}

// ---- leaving ----

/// The longest time for which threads of this process were ready but not running since begin(): the value of the
/// leaving thread, plus the greatest of the others, which run concurrently. A thread's last value is that before it
/// ended.
class delay_watch {
 public:
  explicit delay_watch(int leaving) : leaving_(leaving), thread_([this] { work(); }) {}
  ~delay_watch() {
    stop_.store(true);
    thread_.join();
  }
  void begin() {
    first_ = last_ = bench::threads_now();
    watching_.store(true);
  }
  double end_ms() {
    watching_.store(false);
    while (looking_.load()) std::this_thread::yield();
    look();
    std::uint64_t own = 0, worst = 0;
    for (const auto& [id, t] : last_) {
      const std::uint64_t delay = t.delay_ns - first_[id].delay_ns;
      if (id == leaving_) own = delay;
      else worst = std::max(worst, delay);
    }
    return 1e-6 * static_cast<double>(own + worst);
  }

 private:
  void look() {
    for (const auto& [id, t] : bench::threads_now()) last_[id] = t;
  }
  void work() {
    while (!stop_.load()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      looking_.store(true);
      if (watching_.load()) look();
      looking_.store(false);
    }
  }

  const int leaving_;
  std::map<int, bench::thread_times> first_, last_;
  std::atomic<bool> stop_{false}, watching_{false}, looking_{false};
  std::thread thread_;
};

struct leaving {
  const char* state;
  double allowed_ms;   // one claim, one read, one copy
  std::vector<double> ms{};
};

using steady = std::chrono::steady_clock;

/// Pulls batches until that moment, then destroys the session. Returns the duration of the destruction.
template <class Flow>
void leave_at(Flow flow, steady::duration after, bool sleeps, leaving& into, delay_watch& watch) {
  using namespace std::chrono_literals;
  std::optional<decltype(mr::session(std::declval<Flow>()))> run;
  const auto start = steady::now();
  run.emplace(std::move(flow), mr::session_options{.epochs = mr::endless, .threads = 2, .notice = mr::quiet});
  if (sleeps) std::this_thread::sleep_for(after);
  else
    for (auto& b : *run)
      if (!b || steady::now() - start > after) break;
  watch.begin();
  const double before = bench::now().wall_s;
  run.reset();
  const double ms = 1e3 * (bench::now().wall_s - before);
  into.ms.push_back(std::max(0.0, ms - watch.end_ms()));
}

void measure_leaving(bench::harness& run) {
  using namespace std::chrono_literals;
  const int trials = run.quick() ? 200 : 1'000;
  std::printf("\nleaving at %d random moments (ms until the session is gone, less the threads' own run delay)\n",
              trials);
  const auto slow_row = [](std::int64_t n) {
    spin(1ms);
    return row{n};
  };
  std::vector<leaving> states{{"reading", 5},   {"full", 0.1},      {"starving", 2},   {"mid-epoch", 1.1},
                              {"copying", 0.1}, {"shuffling", 0.1}, {"expanding", 1.1}};
  delay_watch watch(getpid());
  for (int i = 0; i < trials; ++i) {
    mr::rng random({.seed = 1, .sample = static_cast<std::uint64_t>(i)});
    const auto after = std::chrono::microseconds(random.between(0, 30'000));
    const auto which = static_cast<std::size_t>(i) % states.size();
    leaving& state = states[which];
    const numbers fast{.count = 5'000, .files = 5};
    switch (which) {
      case 0:
        leave_at(mr::from(numbers{.count = 50, .read_time = 5ms, .files = 9}) | mr::map(as_row) |
                     mr::batch<&row::number>({.size = 2}),
                 after, false, state, watch);
        break;
      case 1:
        leave_at(mr::from(fast) | mr::map(as_row) | mr::batch<&row::number>({.size = 64}), after, true, state, watch);
        break;
      case 2:
        leave_at(mr::from(numbers{.count = 1'000, .read_time = 2ms}) | mr::map(as_row) |
                     mr::batch<&row::number>({.size = 4}),
                 after, false, state, watch);
        break;
      case 3:
        leave_at(mr::from(fast) | mr::map(slow_row) | mr::batch<&row::number>({.size = 8}), after, false, state, watch);
        break;
      case 4:
        leave_at(mr::from(fast) | mr::map(as_row) | mr::batch<&row::number>({.size = 256}) |
                     mr::to_device({.device = copying_device()}),
                 after, false, state, watch);
        break;
      case 5:
        leave_at(
            mr::from(fast) | mr::shuffle({.window = 1'000}) | mr::map(as_row) | mr::batch<&row::number>({.size = 256}),
            after, false, state, watch);
        break;
      default:
        leave_at(mr::from(fast) | mr::map(slow_row) | mr::filter([](const row& r) { return r.number % 3 != 0; }) |
                     mr::batch<&row::number>({.size = 8}),
                 after, false, state, watch);
    }
  }
  int late = 0;
  double worst = 0;
  std::vector<double> all;
  for (const auto& s : states) {
    for (const double ms : s.ms) {
      late += ms > s.allowed_ms + 50;
      all.push_back(ms);
    }
    worst = std::max(worst, bench::quantile(s.ms, 1));
    std::printf("  %-10s median %.2f, 99 %% %.2f, worst %.2f; allowed %.1f\n", s.state, bench::median(s.ms),
                bench::quantile(s.ms, 0.99), bench::quantile(s.ms, 1), s.allowed_ms + 50);
  }
  run.result("leaving_median", bench::median(all), "ms");
  run.result("leaving_late", late, "of_" + std::to_string(trials), bench::at_most(trials / 1'000));
  run.result("leaving_worst", worst, "ms", bench::at_most(1'000));
}

// ---- profiler ranges ----

/// Measures the cost of a profiler range without a profiler; each claim, read and batch has one.
void measure_ranges(bench::harness& run) {
  constexpr std::uint64_t count = 20'000'000;
  std::vector<double> ns;
  for (int i = 0; i < (run.quick() ? 3 : 7); ++i) {
    const auto timed = [](const auto& body) {
      const double before = bench::now().cpu_s;
      for (std::uint64_t n = 0; n < count; ++n) body(n);
      return bench::now().cpu_s - before;
    };
    // The time of the loop alone is subtracted; the asm statement keeps the counter in it.
    const double loop = timed([](std::uint64_t n) { asm volatile("" : : "r"(n) : "memory"); });
    const double ranges = timed([](std::uint64_t n) {
      const mr::detail::trace_range work("batch", n);
      asm volatile("" : : "r"(n) : "memory");
    });
    ns.push_back(1e9 * (ranges - loop) / static_cast<double>(count));
  }
  std::printf("\na profiler range without a profiler\n  %s ns\n", bench::spread(ns).c_str());
  run.result("trace_range", bench::median(ns), "ns", bench::at_most(2));
}

// ---- first batch ----

void measure_start(bench::harness& run) {
  std::printf("\nfrom the session's construction to the first batch of 256 integers\n");
  std::vector<double> ms;
  for (int i = 0; i < (run.quick() ? 20 : 100); ++i) {
    const double before = bench::now().wall_s;
    mr::session session{empty_flow(256), {.epochs = mr::endless, .notice = mr::quiet}};
    for (auto& b : session)
      if (b) break;
    ms.push_back(1e3 * (bench::now().wall_s - before));
  }
  std::printf("  %s ms\n", bench::spread(ms).c_str());
  run.result("first_batch", bench::median(ms), "ms");
}

}   // namespace

int main(int argc, char** argv) {
  return bench::run_guarded([&] {
    bench::harness run(argc, argv, "engine");
    if (run.wants("empty")) measure_empty_stage(run);
    if (run.wants("full")) measure_full_ring(run);
    if (run.wants("leaving")) measure_leaving(run);
    if (run.wants("ranges")) measure_ranges(run);
    if (run.wants("start")) measure_start(run);
    return run.finish();
  });
}
