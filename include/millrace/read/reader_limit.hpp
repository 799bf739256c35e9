// How many of an intake's threads may read just now, and where the others rest.
//
//   reader_limit seats(16);
//   seats.open(4);                          // threads 0 .. 3; those that rest and may read again are woken
//   while (seats.closed(index) && !stopped) seats.rest(index, stopped);      // each thread, between two reads
//   seats.open_ns(now);                     // of all open ones together, since the start
//
// Errors: none. Threads: any; rest() blocks its thread. After `stopped` is set, wake() ends all rests.
#pragma once

#include <millrace/base/clock.hpp>
#include <millrace/sync/doorbell.hpp>

#include <algorithm>

namespace millrace { inline namespace MILLRACE_ABI {

/// A template only so that including it costs little.
template <class = void>
class basic_reader_limit {
 public:
  /// 0: the trainer's own thread reads, and that is one.
  explicit basic_reader_limit(std::size_t threads)
      : open_(std::max<std::size_t>(1, threads)), all_(open_.load()), since_ns_(steady_now_ns()) {}

  std::size_t open() const noexcept { return open_.load(); }
  /// At least 1, and no more than there are.
  void open(std::size_t count) noexcept {
    {
      const std::lock_guard lock(mutex_);
      const std::uint64_t now = steady_now_ns();
      open_ns_ += open_.load() * (now - since_ns_);
      since_ns_ = now;
      open_.store(std::clamp<std::size_t>(count, 1, all_));
    }
    bell_.ring();
  }
  bool closed(std::size_t thread) const noexcept { return thread >= open_.load(); }
  void rest(std::size_t thread, const std::atomic<bool>& stopped) {
    bell_.wait([&] { return stopped.load() || !closed(thread); });
  }
  void wake() noexcept { bell_.ring(); }

  std::uint64_t open_ns(std::uint64_t now_ns) const noexcept {
    const std::lock_guard lock(mutex_);
    return open_ns_ + open_.load() * (now_ns - std::min(now_ns, since_ns_));
  }

 private:
  std::atomic<std::size_t> open_;
  const std::size_t all_;
  doorbell bell_;
  mutable std::mutex mutex_;
  std::uint64_t open_ns_ = 0, since_ns_;   // until since_ns_
};
using reader_limit = basic_reader_limit<>;

}}  // namespace millrace
