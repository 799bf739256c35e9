// What the copies to a device did with their time: copied, had no batch, had no slot on the device.
//
//   { const copy_times::idle idle(times, /*for_room=*/true);  ... the stager sleeps ... }
//   times.copied({queued, steady_now_ns(), batch}, bytes);   // once it has arrived
//
// By the host's clock: a copy lasts from when it is queued, or the one before it has arrived, until it has arrived.
// So on a GPU whose trainer runs ahead it lasts as long as the step that still uses its slot: what was measured there
// is an upper bound. Errors: none. Threads: idle by the stager, copied() by whoever waits for copies, the rest by any.
#pragma once

#include <millrace/base/clock.hpp>
#include <millrace/measure/flow_figures.hpp>
#include <millrace/measure/histogram.hpp>
#include <millrace/measure/span_ring.hpp>

#include <array>

namespace millrace { inline namespace MILLRACE_ABI {

/// A template only so that including it costs little.
template <class = void>
class basic_copy_times {
 public:
  class idle {
   public:
    idle(basic_copy_times& of, bool for_room) noexcept : of_(&of), for_room_(for_room), since_ns_(steady_now_ns()) {}
    idle(const idle&) = delete;
    idle& operator=(const idle&) = delete;
    ~idle() { (for_room_ ? of_->for_room_ns_ : of_->for_input_ns_).fetch_add(steady_now_ns() - since_ns_ + 1); }

   private:
    basic_copy_times* of_;
    bool for_room_;
    std::uint64_t since_ns_;
  };

  void start() noexcept { started_ns_ = last_ns_ = steady_now_ns(); }
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
    a.at_ns.store(s.end_ns, std::memory_order_relaxed);
    a.batch.store(s.number, std::memory_order_release);
  }
  /// Of one of the last batches; 0 before its copy has arrived, and of others.
  std::uint64_t arrived_ns(std::uint64_t batch) const noexcept {
    const arrival& a = arrivals_[batch % arrivals_.size()];
    return a.batch.load(std::memory_order_acquire) == batch ? a.at_ns.load(std::memory_order_relaxed) : 0;
  }
  std::vector<span_ring::span> spans() const { return spans_.snapshot(); }

  void add_to(flow_figures& f, std::uint64_t now_ns) const {
    const std::uint64_t batches = batches_.load(std::memory_order_relaxed);
    stage_figures s{.name = "copy", .kind = stage_kind::copy, .busy_ns = busy_ns_.load(std::memory_order_relaxed)};
    s.items = batches * f.batch_samples;
    s.bytes = bytes_.load(std::memory_order_relaxed);
    s.service_ns = service_ns_.snapshot();
    // Who waits may have a copy under way meanwhile: what is left beside those is divided as the waits were.
    const std::uint64_t all = now_ns - std::min(started_ns_, now_ns);
    const auto rest = static_cast<double>(all - std::min(s.busy_ns, all));
    const auto room = static_cast<double>(for_room_ns_.load()), input = static_cast<double>(for_input_ns_.load());
    s.blocked_ns = static_cast<std::uint64_t>(room > 0 ? rest * room / (room + input) : 0);
    s.starved_ns = static_cast<std::uint64_t>(rest) - std::min(s.blocked_ns, static_cast<std::uint64_t>(rest));
    f.stages.push_back(std::move(s));
  }

 private:
  struct arrival {
    std::atomic<std::uint64_t> batch{~std::uint64_t{0}}, at_ns{0};
  };
  std::array<arrival, 32> arrivals_;   // by batch: a trainer asks for the last one that it was given
  std::uint64_t started_ns_ = 0;
  std::uint64_t last_ns_ = 0;   // of whoever waits for copies
  std::atomic<std::uint64_t> busy_ns_{0}, batches_{0}, bytes_{0}, for_room_ns_{0}, for_input_ns_{0};
  own_histogram service_ns_;
  span_ring spans_;
};
using copy_times = basic_copy_times<>;

}}  // namespace millrace
