// The limits of a read stage. reader_limit limits the number of I/O threads that may read at a time; the other threads
// sleep. read_ahead_limit limits the bytes that are read ahead.
//
//   mr::detail::reader_limit limit(16);
//   limit.open(4);                          // threads 0 to 3 may read; wakes them if they sleep
//   while (limit.closed(index) && !stopped) limit.rest(index, stopped);      // each thread, between two reads
//   limit.open_ns(now);                     // time that threads were allowed to read, summed over all threads
//
// Errors: none. Threads: reader_limit is thread-safe. rest() blocks the calling thread until it may read, or `stopped`
// is true. After `stopped` is set, call wake().
#pragma once

#include <millrace/base/clock.hpp>
#include <millrace/base/version.hpp>
#include <millrace/sync/doorbell.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// The maximum number of bytes that are read ahead. The limit is 64 MiB at first. It grows if a reader has waited
// because of the limit, and if the workers have no samples at the end of a later read.
// Any thread may call bytes(). The other functions require the lock of the read stage.

/// A limit in bytes that grows on demand.
class read_ahead_limit {
 public:
  static constexpr std::size_t first_bytes = std::size_t{64} << 20;

  /// `most` is the highest limit in bytes.
  explicit read_ahead_limit(std::size_t most) noexcept : most_(most), now_(std::min(most, first_bytes)) {}

  /// Returns the current limit.
  std::size_t bytes() const noexcept { return now_.load(std::memory_order_relaxed); }
  /// Records that a reader waits because of the limit.
  void reached() noexcept { reached_ = true; }
  /// Records the number of samples that wait for the workers at the end of a read. Before the first samples have
  /// arrived, 0 has no effect.
  void record_backlog(std::uint64_t samples) noexcept {
    if (samples > 0) fed_ = true;
    if (samples > 0 || !fed_ || !reached_) return;
    reached_ = false;
    now_.store(bytes() > most_ / 2 ? most_ : 2 * bytes(), std::memory_order_relaxed);
  }

 private:
  const std::size_t most_;
  std::atomic<std::size_t> now_;
  bool reached_ = false, fed_ = false;
};

/// Threads with a number below open() may read. The others sleep.
class reader_limit {
 public:
  /// Allows all `threads` threads to read. With 0 threads, the trainer reads, and counts as one thread.
  explicit reader_limit(std::size_t threads)
      : open_(std::max<std::size_t>(1, threads)), all_(open_.load()), since_ns_(steady_now_ns()) {}

  /// Returns the number of threads that may read.
  std::size_t open() const noexcept { return open_.load(); }
  /// Allows the threads 0 to count - 1 to read. `count` is limited to the range from 1 to the number of threads.
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
  /// Returns whether thread `thread` is currently forbidden to read.
  bool closed(std::size_t thread) const noexcept { return thread >= open_.load(); }
  /// Blocks thread `thread` until it may read, or until `stopped` is set.
  void rest(std::size_t thread, const std::atomic<bool>& stopped) {
    bell_.wait([&] { return stopped.load() || !closed(thread); });
  }
  /// Wakes all sleeping threads, so that they check `stopped` again.
  void wake() noexcept { bell_.ring(); }

  /// Returns the nanoseconds that threads were allowed to read, summed over all threads.
  std::uint64_t open_ns(std::uint64_t now_ns) const noexcept {
    const std::lock_guard lock(mutex_);
    return open_ns_ + open_.load() * (now_ns - std::min(now_ns, since_ns_));
  }

 private:
  std::atomic<std::size_t> open_;
  const std::size_t all_;
  doorbell bell_;
  mutable std::mutex mutex_;
  std::uint64_t open_ns_ = 0, since_ns_;   // open_ns_: sum up to since_ns_
};

}}}   // namespace millrace::detail
