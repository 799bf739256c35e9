// How long a device's stream had no batch, by the device's own events: what the host's clock cannot say of a trainer
// that runs ahead.
//
//   gaps.allocate(backend, 64);
//   gaps.released(stream);      // behind the step: what the stream did with a batch ends here
//   gaps.taken(stream);         // behind the stream's wait for the next batch: it could go on from here
//   gaps.collect();             // whatever has been reached; waits for nothing
//   gaps.add_to(figures);       // device_gap_ns, where the device can tell
//
// A gap is the time between two marks next to each other in one stream, so that nothing but the wait for the batch (and
// a host that is late to ask for it) lies between them. Where marks are not reached for so long that there is no pair
// left, the gap is not counted: a stream that far behind has none. What lies between two epochs of a loop is no gap.
// Errors: those of recording; a clock that cannot be read any more ends the counting. Threads: any, for all of it.
#pragma once

#include <millrace/device/device.hpp>
#include <millrace/measure/flow_figures.hpp>

#include <mutex>
#include <optional>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// A template only so that including it costs little.
template <class = void>
class basic_device_gaps {
 public:
  void allocate(std::shared_ptr<device_backend> backend, std::size_t most_under_way) {
    backend_ = std::move(backend);
    for (std::size_t i = 0; i < most_under_way; ++i) {
      pair p{backend_->make_timed_event(), backend_->make_timed_event()};
      if (!p.from || !p.to) return;
      ring_.push_back(std::move(p));
    }
    counts_ = !ring_.empty();
  }

  void released(stream_view stream) {
    const std::lock_guard lock(mutex_);
    if (!counts_ || next_ - first_ == ring_.size()) return;
    backend_->record(*at(next_).from, stream);
    begun_ = true;
  }
  void taken(stream_view stream) {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(begun_, false)) return;
    backend_->record(*at(next_).to, stream);
    ++next_;
  }
  /// The next batch is not asked for at once.
  void pause() noexcept {
    const std::lock_guard lock(mutex_);
    begun_ = false;
  }

  void collect() const noexcept {
    const std::lock_guard lock(mutex_);
    try {
      for (; first_ < next_; ++first_) {
        const std::optional<std::uint64_t> gap = backend_->elapsed_ns(*at(first_).from, *at(first_).to);
        if (!gap) return;
        sum_ns_ += *gap;
      }
    } catch (...) {
      counts_ = false;
      first_ = next_;
    }
  }
  void add_to(flow_figures& f) const {
    collect();
    const std::lock_guard lock(mutex_);
    if (counts_) f.device_gap_ns = sum_ns_;
  }

 private:
  struct pair {
    std::unique_ptr<device_event> from, to;
  };
  const pair& at(std::uint64_t number) const noexcept { return ring_[static_cast<std::size_t>(number % ring_.size())]; }

  std::shared_ptr<device_backend> backend_;
  mutable std::mutex mutex_;
  std::vector<pair> ring_;
  mutable std::uint64_t first_ = 0;   // that was not collected
  std::uint64_t next_ = 0;
  bool begun_ = false;
  mutable bool counts_ = false;
  mutable std::uint64_t sum_ns_ = 0;
};
using device_gaps = basic_device_gaps<>;

}}  // namespace millrace
