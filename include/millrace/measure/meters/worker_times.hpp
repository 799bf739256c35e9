// Measures the time that one worker works, waits for input, or waits for space. The time during which the worker is
// closed (inactive) does not count.
//
//   times.begin(now);                                               // the worker begins a stay
//   times.worked(now, 32, batch);                                   // 32 items since begin() or the previous call
//   times.leave(now, mr::detail::worker_times::waits_for::input);   // the stay ends; waits until the next begin()
//   times.add_to(stage, now);                                       // any thread, any time
//
// A stay is a period in which a thread works without waiting. Reading the clock of processor time is slow. Therefore
// processor time is measured only in every eighth stay. The run delay (the wait for a core) is measured at most once
// per 10 ms.
// Errors: none. Threads: only one thread at a time may call the functions of the worker, and any thread may call
// add_to(). add_to() may miss a value that is being written, but does not count any value twice.
#pragma once

#include <millrace/base/clock.hpp>
#include <millrace/measure/meters/span_ring.hpp>
#include <millrace/measure/values/flow_statistics.hpp>
#include <millrace/measure/values/histogram.hpp>
#include <millrace/measure/values/process_statistics.hpp>

#include <algorithm>
#include <pthread.h>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The times of one worker.
class worker_times {
 public:
  enum class waits_for : std::uint8_t { input, space, nothing };   // `nothing`: the worker is closed

  explicit worker_times(std::uint64_t now_ns) { idle_since_ns_.store(now_ns, std::memory_order_relaxed); }

  /// Begins a stay: ends the wait, and records which thread is the worker.
  void begin(std::uint64_t now_ns) noexcept {
    const std::uint64_t since = idle_since_ns_.load(std::memory_order_relaxed);
    idle_since_ns_.store(0, std::memory_order_release);
    if (since != 0) waited(now_ns - std::min(since, now_ns));
    at_ns_.store(now_ns, std::memory_order_relaxed);
    thread_.store(std::uint64_t(::pthread_self()), std::memory_order_relaxed);
    stay_ns_ = 0;
    if ((stays_++ & 7) == 0) cpu_at_ns_ = static_cast<std::uint64_t>(read_clock_ns(CLOCK_THREAD_CPUTIME_ID));
    if (now_ns < delay_due_ns_) return;
    delay_due_ns_ = now_ns + delay_interval_ns;
    delay_at_ns_ = run_delay_of_this_thread_ns();
  }
  /// Sets the ticket (the number of a sample) on which the worker works from now on.
  void at(std::uint64_t ticket) noexcept { ticket_.store(ticket, std::memory_order_relaxed); }
  /// Records work on `items` items since begin() or the previous call. Returns the time of this work in nanoseconds.
  std::uint64_t worked(std::uint64_t until_ns, std::size_t items, std::uint64_t batch) noexcept {
    spans_.record({at_ns_.load(std::memory_order_relaxed), until_ns, batch});
    const std::uint64_t spent = was_busy(until_ns);
    add(items_, items);
    service_ns_.record(spent / items, items);
    return spent;
  }
  /// Ends a stay. The worker waits until the next begin().
  void leave(std::uint64_t now_ns, waits_for what) noexcept {
    end_of_stay(now_ns);
    waiting_for_ = what;
    idle_since_ns_.store(now_ns, std::memory_order_release);
  }
  /// Changes the reason for the wait. The worker must be waiting.
  void wait_for(std::uint64_t now_ns, waits_for what) noexcept {
    const std::uint64_t since = idle_since_ns_.load(std::memory_order_relaxed);
    idle_since_ns_.store(now_ns, std::memory_order_release);   // stored first, because add_to() reads it last
    waited(now_ns - std::min(since, now_ns));
    waiting_for_ = what;
  }
  /// Ends a stay, but does not begin a wait. The dispatcher (the object that assigns work to workers) calls this
  /// function when a worker pauses for other work and queues again. The time since worked() also counts as work. Has no
  /// effect on a worker that is waiting.
  void end_of_stay(std::uint64_t now_ns) noexcept {
    if (idle_since_ns_.load(std::memory_order_relaxed) != 0) return;
    was_busy(now_ns);
    if (cpu_at_ns_ != 0) {
      const auto cpu = static_cast<std::uint64_t>(read_clock_ns(CLOCK_THREAD_CPUTIME_ID)) - cpu_at_ns_;
      cpu_at_ns_ = 0;
      add(measured_cpu_ns_, std::min(cpu, stay_ns_));
      add(measured_ns_, stay_ns_);
    }
    if (!delay_at_ns_) return;
    if (const auto delay = run_delay_of_this_thread_ns()) {
      add(measured_delay_ns_, std::min(*delay - std::min(*delay, *delay_at_ns_), stay_ns_));
      add(delay_of_ns_, stay_ns_);
    }
    delay_at_ns_.reset();
  }

  struct state {
    bool works = false;
    waits_for what = waits_for::input;   ///< reason for the wait, if the worker is waiting
    std::uint64_t since_ns = 0, ticket = 0, thread = 0;
  };
  state now() const noexcept {
    const std::uint64_t idle_since = idle_since_ns_.load(std::memory_order_acquire);
    const bool works = idle_since == 0;
    return {works, waiting_for_, works ? at_ns_.load() : idle_since, ticket_.load(), thread_.load()};
  }
  std::vector<span_ring::span> spans() const { return spans_.snapshot(); }
  std::uint64_t busy_ns() const noexcept { return busy_ns_.load(std::memory_order_relaxed); }

  MILLRACE_RARE void add_to(stage_statistics& s, std::uint64_t now_ns) const noexcept {
    std::uint64_t starved = starved_ns_.load(std::memory_order_acquire);
    std::uint64_t blocked = blocked_ns_.load(std::memory_order_acquire);
    const std::uint64_t since = idle_since_ns_.load(std::memory_order_acquire);
    if (const waits_for what = waiting_for_; since != 0 && since < now_ns && what != waits_for::nothing)
      (what == waits_for::space ? blocked : starved) += now_ns - since;
    const std::uint64_t busy = busy_ns();
    const measured_times m = measured();
    const auto part_of_busy = [busy](std::uint64_t part_ns, std::uint64_t of_ns) {
      if (of_ns == 0) return std::uint64_t{0};
      return static_cast<std::uint64_t>(static_cast<double>(busy) * static_cast<double>(part_ns) /
                                        static_cast<double>(of_ns));
    };
    s.busy_ns += busy;
    s.starved_ns += starved;
    s.blocked_ns += blocked;
    s.cpu_ns += part_of_busy(m.cpu_ns, m.cpu_of_ns);
    s.run_delay_ns += part_of_busy(m.delay_ns, m.delay_of_ns);
    s.items += items_.load(std::memory_order_relaxed);
    s.service_ns += service_ns_.snapshot();
  }

  /// The measured times: processor time and run delay, each with the total length of the measured stays.
  struct measured_times {
    std::uint64_t cpu_ns = 0, cpu_of_ns = 0, delay_ns = 0, delay_of_ns = 0;

    /// Returns the share of the work time in which a worker runs on a core or waits for a core; 0 if too little time
    /// was measured.
    double share_on_cores() const noexcept {
      if (cpu_of_ns < enough_ns || delay_of_ns < enough_ns) return 0;
      const double share = static_cast<double>(cpu_ns) / static_cast<double>(cpu_of_ns) +
                           static_cast<double>(delay_ns) / static_cast<double>(delay_of_ns);
      return std::clamp(share, 0.001, 1.0);
    }
    measured_times& operator+=(const measured_times& more) noexcept {
      cpu_ns += more.cpu_ns;
      cpu_of_ns += more.cpu_of_ns;
      delay_ns += more.delay_ns;
      delay_of_ns += more.delay_of_ns;
      return *this;
    }
    friend measured_times operator-(const measured_times& all, const measured_times& before) noexcept {
      return {all.cpu_ns - before.cpu_ns, all.cpu_of_ns - before.cpu_of_ns, all.delay_ns - before.delay_ns,
              all.delay_of_ns - before.delay_of_ns};
    }
  };
  measured_times measured() const noexcept {
    return {measured_cpu_ns_.load(), measured_ns_.load(), measured_delay_ns_.load(), delay_of_ns_.load()};
  }

 private:
  static constexpr std::uint64_t delay_interval_ns = 10'000'000;
  static constexpr std::uint64_t enough_ns = 20'000'000;   // minimum measured time for a result

  static void add(std::atomic<std::uint64_t>& counter, std::uint64_t n) noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_release);
  }
  void waited(std::uint64_t ns) noexcept {
    if (const waits_for what = waiting_for_; what != waits_for::nothing)
      add(what == waits_for::space ? blocked_ns_ : starved_ns_, ns);
  }
  /// Adds the time since the previous call, or since begin(), to the busy time. Returns the added time.
  std::uint64_t was_busy(std::uint64_t until_ns) noexcept {
    const std::uint64_t spent = until_ns - at_ns_.load(std::memory_order_relaxed);
    at_ns_.store(until_ns, std::memory_order_relaxed);
    stay_ns_ += spent;
    add(busy_ns_, spent);
    return spent;
  }

  std::atomic<std::uint64_t> busy_ns_{0}, starved_ns_{0}, blocked_ns_{0}, items_{0};
  std::atomic<std::uint64_t> idle_since_ns_{0};   // 0 while the worker works
  std::atomic<std::uint64_t> measured_cpu_ns_{0}, measured_ns_{0};
  std::atomic<std::uint64_t> measured_delay_ns_{0}, delay_of_ns_{0};
  std::atomic<std::uint64_t> at_ns_{0}, ticket_{0}, thread_{0};
  std::atomic<waits_for> waiting_for_{waits_for::input};
  own_histogram service_ns_;
  span_ring spans_;
  // Only the worker uses these members.
  std::uint64_t stay_ns_ = 0, cpu_at_ns_ = 0, stays_ = 0, delay_due_ns_ = 0;
  std::optional<std::uint64_t> delay_at_ns_{};
};

}}}   // namespace millrace::detail
