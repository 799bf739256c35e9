// A training whose every stage sleeps: a real session, with real threads and rings, whose bottleneck is known.
//
//   bench::sleeping_run r = bench::run_asleep({.workers = 4, .work_ns = 8e6, .step_ns = 20e6});
//   r.figures.samples_per_s();                            // of the batches behind the warm-up
//   bench::limits_of(settings);                           // what each stage alone could do, by how it is set up
//
// Who oversleeps sleeps less the next time, so that times have the mean that they should, whatever the machine's load;
// copies and steps follow the emulated accelerator's calendar, and reads that share one pipe the pipe's. Times are
// nanoseconds: of a read, of unpacking what it brought, of one sample's work, of a batch's copy and step.
// Errors: those of sessions. Threads: any number of runs at a time.
#pragma once

#include "emulated_accelerator.hpp"

#include <millrace/millrace.hpp>

#include <atomic>

namespace bench {

struct sleeping_settings {
  std::size_t io_threads = 4, workers = 4, prefetch = 4, batch = 16;
  std::size_t device_slots = 0;         ///< 0: the step uses the host's slots, and nothing is copied
  std::size_t samples_per_read = 1, reads_per_part = 16;
  std::size_t read_ahead_bytes = std::size_t{64} << 20;   ///< of samples of 100 kB
  bool one_pipe = false;                ///< reads are served one after the other
  double read_ns = 1e6, unpack_ns = 0, work_ns = 1e6, copy_ns = 0, step_ns = 1e6;
  double spread = 0.5;                  ///< from mean x (1 - spread) to mean x (1 + spread), but for copies
  std::uint64_t seed = 1;
  std::size_t batches = 60;
};

struct sleeping_run {
  millrace::flow_figures figures{};
};

namespace detail {

/// Sleeps that are as long as asked for on average.
class sleeper {
 public:
  void sleep(double ns) {
    const auto start = clock::now();
    const auto until = start + std::chrono::nanoseconds(static_cast<std::int64_t>(ns) - owed_ns_.exchange(0));
    if (until > start) std::this_thread::sleep_until(until);
    owed_ns_.fetch_add(std::chrono::nanoseconds(clock::now() - until).count());
  }
  /// One sleep at a time; who comes meanwhile is in line.
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

/// Drawn anew in every session, by what it is for: the same times for the same read, sample or step.
inline double drawn_ns(const sleeping_settings& s, double mean_ns, std::uint64_t stage, std::uint64_t number) {
  millrace::draw random({.seed = s.seed, .sample = number, .stage = stage});
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
  millrace::read_meter reads;
};

class sleeping_source {
 public:
  using item = sleeping_sample;

  sleeping_source(const sleeping_settings& s, std::shared_ptr<sleepers> all) : s_(s), all_(std::move(all)) {}

  std::size_t parts() const noexcept { return 64; }
  millrace::read_meter& reads() const noexcept { return all_->reads; }

  class reader {
   public:
    reader(const sleeping_settings& s, std::shared_ptr<sleepers> all, std::uint64_t part)
        : s_(s), all_(std::move(all)), next_(part * s.reads_per_part * s.samples_per_read),
          end_(next_ + s.reads_per_part * s.samples_per_read) {}
    std::optional<item> next() {
      if (next_ == end_) return std::nullopt;
      if (next_ % s_.samples_per_read == 0) read(next_ / s_.samples_per_read);
      return item{next_++};
    }

   private:
    void read(std::uint64_t number) {
      {
        millrace::read_meter::running read(all_->reads);
        const double ns = drawn_ns(s_, s_.read_ns, 0, number);
        if (s_.one_pipe) all_->reading.sleep_in_line(ns);
        else all_->reading.sleep(ns);
        read.brought(100'000 * s_.samples_per_read);
      }
      if (s_.unpack_ns > 0) all_->unpacking.sleep(drawn_ns(s_, s_.unpack_ns, 1, number));
    }

    sleeping_settings s_;
    std::shared_ptr<sleepers> all_;
    std::uint64_t next_, end_;
  };
  reader open(std::size_t part, std::uint64_t epoch) const { return {s_, all_, epoch * parts() + part}; }

 private:
  sleeping_settings s_;
  std::shared_ptr<sleepers> all_;
};

}  // namespace detail

inline sleeping_run run_asleep(const sleeping_settings& s) {
  namespace mr = millrace;
  const auto all = std::make_shared<detail::sleepers>();
  emulated_accelerator chip({.pinned_bytes_per_second = 1e15,
                             .copy_latency_ns = static_cast<std::int64_t>(s.copy_ns)});
  mr::session run{mr::from(detail::sleeping_source(s, all)) |
                      mr::map([&s, &working = all->working](const detail::sleeping_sample& sample) {
                        working.sleep(detail::drawn_ns(s, s.work_ns, 2, sample.number));
                        return detail::sleeping_row{static_cast<std::int32_t>(sample.number)};
                      }) |
                      mr::batch<&detail::sleeping_row::number>({.size = s.batch}) |
                      mr::prefetch({.batches = s.prefetch}) |
                      mr::to_device({.device = s.device_slots > 0 ? chip.device() : mr::host_device(),
                                     .slots = std::max<std::size_t>(1, s.device_slots)}),
                  {.epochs = mr::endless,
                   .threads = static_cast<int>(s.workers),
                   .io_threads = static_cast<unsigned>(s.io_threads),
                   .read_ahead_bytes = s.read_ahead_bytes,
                   .announce = false}};
  const std::size_t warm_up = s.prefetch + s.device_slots + 8;
  mr::flow_figures before;
  for (std::size_t batches = 0; auto& b : run) {
    static_cast<void>(b);
    chip.launch_step(1e-9 * detail::drawn_ns(s, s.step_ns, 3, batches));
    chip.wait();
    if (++batches == warm_up) before = run.figures();
    if (batches == warm_up + s.batches) break;
  }
  return {run.figures() - before};
}

/// Samples per second of reading, work, copies and steps, by how they are set up.
inline std::array<double, 4> limits_of(const sleeping_settings& s) {
  const auto batch = static_cast<double>(s.batch), per_read = static_cast<double>(s.samples_per_read);
  const double reads_at_once = s.one_pipe ? 1 : static_cast<double>(s.io_threads);
  const auto limit = [](double samples, double ns) { return ns > 0 ? 1e9 * samples / ns : 1e12; };
  // Threads that share a pipe unpack beside it.
  const double reading =
      s.one_pipe ? std::min(limit(per_read, s.read_ns),
                            limit(per_read * static_cast<double>(s.io_threads), s.read_ns + s.unpack_ns))
                 : limit(per_read * reads_at_once, s.read_ns + s.unpack_ns);
  return {reading, limit(static_cast<double>(s.workers), s.work_ns),
          s.device_slots > 0 ? limit(batch, s.copy_ns) : 1e12, limit(batch, s.step_ns)};
}

}  // namespace bench
