// Measures how long a stream of a device had no batch, by events of the device. The host clock cannot measure this time
// if the trainer queues work ahead of the device.
//
//   mr::detail::device_gaps gaps;
//   gaps.allocate(backend, stream, 64);
//   gaps.released(stream);      // after the step: the stream's work on a batch ends here
//   gaps.acquired(stream);      // after the stream's wait for the next batch: the stream can continue from here
//   gaps.collect();             // collects the marks that the device has reached; does not wait
//   gaps.add_to(metrics);       // device_gap_ns, if the device can measure it
//
// A gap is the time from the mark of released() to the next mark of acquired() in the same stream. In this time the
// stream waits for the batch, or the host has not requested the batch yet. If all pairs of events are in use, the host
// has submitted far more work than the stream has completed. The stream is busy then, and no gap is recorded. The time
// between two epochs of a training loop is not a gap.
// Errors: exceptions from recording an event are not caught. If the clock cannot be read, the measurement ends.
// Threads: any thread may call released(), acquired(), pause(), collect() and add_to().
#pragma once

#include <millrace/device/device.hpp>
#include <millrace/measure/values/flow_statistics.hpp>

#include <mutex>
#include <optional>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Measures the gaps of one stream.
class device_gaps {
 public:
  /// Creates `max_under_way` pairs of events. Without a device clock for this stream, nothing is measured.
  void allocate(std::shared_ptr<device_backend> backend, stream_view stream, std::size_t max_under_way) {
    backend_ = std::move(backend);
    for (std::size_t i = 0; i < max_under_way; ++i) {
      pair p{backend_->make_timed_event(stream), backend_->make_timed_event(stream)};
      if (!p.from || !p.to) return;
      ring_.push_back(std::move(p));
    }
    counts_ = !ring_.empty();
  }

  /// Marks the end of the stream's work on a batch.
  void released(stream_view stream) {
    const std::lock_guard lock(mutex_);
    if (!counts_ || next_ - first_ == ring_.size()) return;
    backend_->record(*at(next_).from, stream);
    begun_ = true;
  }
  /// Marks the end of the stream's wait for the next batch.
  void acquired(stream_view stream) {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(begun_, false)) return;
    backend_->record(*at(next_).to, stream);
    ++next_;
  }
  /// Discards the current gap. Called if the trainer does not request the next batch immediately.
  void pause() noexcept {
    const std::lock_guard lock(mutex_);
    begun_ = false;
  }

  /// Adds the gaps that the device has completed to the sum. Does not wait.
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
  /// Sets device_gap_ns if gaps are measured.
  void add_to(flow_statistics& f) const {
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
  mutable std::uint64_t first_ = 0;   // the first pair that was not collected yet
  std::uint64_t next_ = 0;
  bool begun_ = false;
  mutable bool counts_ = false;
  mutable std::uint64_t sum_ns_ = 0;
};

}}}  // namespace millrace::detail
