// The session of parts/sleeping_flow.hpp, compiled once for all benchmarks that sleep.
#include "sleeping_flow.hpp"

#include "emulated_accelerator.hpp"

#include <millrace/millrace.hpp>

#include <atomic>

namespace bench {

namespace {

/// Sleeps whose mean length is the requested one.
class sleeper {
 public:
  void sleep(double ns) {
    const auto start = clock::now();
    const auto until = start + std::chrono::nanoseconds(static_cast<std::int64_t>(ns) - owed_ns_.exchange(0));
    if (until > start) std::this_thread::sleep_until(until);
    owed_ns_.fetch_add(std::chrono::nanoseconds(clock::now() - until).count());
  }
  /// One sleep at a time; other callers queue.
  void sleep_in_line(double ns) {
    clock::time_point until;
    {
      const std::lock_guard lock(mutex_);
      free_at_ = std::max(free_at_, clock::now()) + std::chrono::nanoseconds(static_cast<std::int64_t>(ns));
      until = free_at_;
    }
    std::this_thread::sleep_until(until);
  }

 private:
  using clock = std::chrono::steady_clock;
  std::atomic<std::int64_t> owed_ns_{0};
  std::mutex mutex_;
  clock::time_point free_at_{};
};

/// Drawn in every session from its purpose: the same read, sample or step has the same time.
double drawn_ns(const sleeping_settings& s, double mean_ns, std::uint64_t stage, std::uint64_t number) {
  millrace::rng random({.seed = s.seed, .sample = number, .stage = stage});
  return mean_ns * (1 + s.spread * (2 * random.uniform() - 1));
}

struct sleeping_sample {
  std::uint64_t number = 0;
  std::size_t held_bytes() const noexcept { return 100'000; }
};
struct sleeping_row {
  std::int32_t number = 0;
};

struct sleepers {
  sleeper reading, unpacking, working;
  millrace::detail::read_meter reads;
};

class sleeping_source {
 public:
  using item = sleeping_sample;

  sleeping_source(const sleeping_settings& s, std::shared_ptr<sleepers> all) : s_(s), all_(std::move(all)) {}

  std::size_t shards() const noexcept { return 64; }
  millrace::detail::read_meter& reads() const noexcept { return all_->reads; }

  class reader {
   public:
    reader(const sleeping_settings& s, std::shared_ptr<sleepers> all, std::uint64_t shard)
        : s_(s),
          all_(std::move(all)),
          next_(shard * s.reads_per_shard * s.samples_per_read),
          end_(next_ + s.reads_per_shard * s.samples_per_read) {}
    std::optional<item> next() {
      if (next_ == end_) return std::nullopt;
      if (next_ % s_.samples_per_read == 0) read(next_ / s_.samples_per_read);
      return item{next_++};
    }

   private:
    void read(std::uint64_t number) {
      {
        millrace::detail::read_meter::running read(all_->reads);
        const double ns = drawn_ns(s_, s_.read_ns, 0, number);
        if (s_.one_pipe) all_->reading.sleep_in_line(ns);
        else all_->reading.sleep(ns);
        read.record_bytes(100'000 * s_.samples_per_read);
      }
      if (s_.unpack_ns > 0) all_->unpacking.sleep(drawn_ns(s_, s_.unpack_ns, 1, number));
    }

    sleeping_settings s_;
    std::shared_ptr<sleepers> all_;
    std::uint64_t next_, end_;
  };
  reader open(std::size_t shard, std::uint64_t epoch) const { return {s_, all_, epoch * shards() + shard}; }

 private:
  sleeping_settings s_;
  std::shared_ptr<sleepers> all_;
};

}   // namespace

millrace::flow_statistics run_asleep(const sleeping_settings& s) {
  namespace mr = millrace;
  const auto all = std::make_shared<sleepers>();
  emulated_accelerator chip({.pinned_bytes_per_second = 1e15, .copy_latency_ns = static_cast<std::int64_t>(s.copy_ns)});
  mr::session run{mr::from(sleeping_source(s, all)) |
                      mr::map([&s, &working = all->working](const sleeping_sample& sample) {
                        working.sleep(drawn_ns(s, s.work_ns, 2, sample.number));
                        return sleeping_row{static_cast<std::int32_t>(sample.number)};
                      }) |
                      mr::batch<&sleeping_row::number>({.size = s.batch}) | mr::prefetch({.batches = s.prefetch}) |
                      mr::to_device({.device = s.device_slots > 0 ? chip.device() : mr::host_device(),
                                     .slots = std::max<std::size_t>(1, s.device_slots)}),
                  {.epochs = mr::endless,
                   .threads = static_cast<int>(s.workers),
                   .io_threads = static_cast<unsigned>(s.io_threads),
                   .read_ahead_bytes = s.read_ahead_bytes,
                   .notice = mr::quiet}};
  const std::size_t warm_up = s.prefetch + s.device_slots + 8;
  mr::flow_statistics before;
  for (std::size_t batches = 0; auto& b : run) {
    static_cast<void>(b);
    chip.launch_step(1e-9 * drawn_ns(s, s.step_ns, 3, batches));
    chip.wait();
    if (++batches == warm_up) before = run.statistics();
    if (batches == warm_up + s.batches) break;
  }
  return run.statistics() - before;
}

}   // namespace bench
