// Measures the time for copies to a device. Also measures how long the stager (the thread that copies) waits for a
// batch or for a free device slot.
//
//   times.start();
//   {
//     const mr::detail::copy_times::idle idle(times, /*for_space=*/true);
//     wait_for_space();                                                      // the stager sleeps
//   }
//   times.copied({queued_ns, mr::detail::steady_now_ns(), batch}, bytes);    // after the copy has arrived
//
// Times are from the host's clock. A copy begins when it is queued, or when the previous copy has arrived, whichever is
// later. A copy ends when its data has arrived. The measured time is an upper bound: the copy may first wait for a
// training step that still uses the device slot.
// Errors: none. Threads: the stager uses `idle`. The thread that waits for copies calls copied(). Any thread may call
// the other members.
#pragma once

#include <millrace/base/clock.hpp>
#include <millrace/measure/meters/span_ring.hpp>
#include <millrace/measure/values/flow_statistics.hpp>
#include <millrace/measure/values/histogram.hpp>

#include <array>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The times for the copies to a device.
class copy_times {
 public:
  /// Measures one idle period of the stager. If `for_space` is true, the stager waits for a device slot. If `for_space`
  /// is false, the stager waits for a batch.
  class idle {
   public:
    idle(copy_times& of, bool for_space) noexcept : of_(&of), for_space_(for_space), since_ns_(steady_now_ns()) {}
    idle(const idle&) = delete;
    idle& operator=(const idle&) = delete;
    ~idle() { (for_space_ ? of_->for_space_ns_ : of_->for_input_ns_).fetch_add(steady_now_ns() - since_ns_ + 1); }

   private:
    copy_times* of_;
    bool for_space_;
    std::uint64_t since_ns_;
  };

  void start() noexcept { started_ns_ = last_ns_ = steady_now_ns(); }
  /// Records a copy that has arrived.
  void copied(const span_ring::span& s, std::size_t bytes) noexcept {
    const std::uint64_t from = std::max(s.start_ns, last_ns_);
    const std::uint64_t spent = s.end_ns - std::min(from, s.end_ns);
    last_ns_ = s.end_ns;
    busy_ns_.fetch_add(spent, std::memory_order_relaxed);
    batches_.fetch_add(1, std::memory_order_relaxed);
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
    service_ns_.record(spent);
    spans_.record({from, s.end_ns, s.number});
    arrival& a = arrivals_[s.number % arrivals_.size()];
    a.batch.store(no_batch, std::memory_order_relaxed);
    a.at_ns.store(s.end_ns, std::memory_order_release);
    a.batch.store(s.number, std::memory_order_release);
  }
  /// Returns the time at which the copy of a batch arrived. Returns 0 if the copy has not arrived, or if the batch is
  /// not among the last 32.
  std::uint64_t arrived_ns(std::uint64_t batch) const noexcept {
    const arrival& a = arrivals_[batch % arrivals_.size()];
    if (a.batch.load(std::memory_order_acquire) != batch) return 0;
    const std::uint64_t at_ns = a.at_ns.load(std::memory_order_acquire);
    return a.batch.load(std::memory_order_relaxed) == batch ? at_ns : 0;   // 0 if a later copy has replaced the entry
  }
  std::vector<span_ring::span> spans() const { return spans_.snapshot(); }

  MILLRACE_RARE void add_to(flow_statistics& f, std::uint64_t now_ns) const {
    const std::uint64_t batches = batches_.load(std::memory_order_relaxed);
    stage_statistics s{.name = "copy", .kind = stage_kind::copy, .busy_ns = busy_ns_.load(std::memory_order_relaxed)};
    s.items = batches * f.batch_samples;
    s.bytes = bytes_.load(std::memory_order_relaxed);
    s.service_ns = service_ns_.snapshot();
    // The time without a copy is divided into blocked and starved time, in proportion to the stager's waits for space
    // and for input.
    const std::uint64_t all = now_ns - std::min(started_ns_, now_ns);
    const auto rest = static_cast<double>(all - std::min(s.busy_ns, all));
    const auto space = static_cast<double>(for_space_ns_.load()), input = static_cast<double>(for_input_ns_.load());
    s.blocked_ns = static_cast<std::uint64_t>(space > 0 ? rest * space / (space + input) : 0);
    s.starved_ns = static_cast<std::uint64_t>(rest) - std::min(s.blocked_ns, static_cast<std::uint64_t>(rest));
    f.stages.push_back(std::move(s));
  }

 private:
  static constexpr std::uint64_t no_batch = ~std::uint64_t{0};
  struct arrival {
    std::atomic<std::uint64_t> batch{no_batch}, at_ns{0};
  };
  std::array<arrival, 32> arrivals_;   // the index is the batch number % 32
  std::uint64_t started_ns_ = 0;
  std::uint64_t last_ns_ = 0;   // used only by the thread that waits for copies
  std::atomic<std::uint64_t> busy_ns_{0}, batches_{0}, bytes_{0}, for_space_ns_{0}, for_input_ns_{0};
  own_histogram service_ns_;
  span_ring spans_;
};

}}}   // namespace millrace::detail
