// The base class of the read stages. Runs and wakes their I/O threads, reads a source in chunks, and counts the reads.
//
//   class my_read_stage : public mr::detail::read_stage_base<mr::detail::shards_source> {
//     bool pass_on() override { return buffer.pass_on(); }                       // all four are called under the lock
//     portion find_work() override { return {.of = &buffer, .from = buffer.front(), .most = 64}; }
//     bool needs_space() override { return !buffer.had_space(); }
//     void finish(std::exception_ptr error) override { buffer.finish(std::move(error)); }
//   };
//
// Any thread may read any shard, one chunk at a time.
// Errors: an error ends the reading of its shard. The name of the shard is added to the error.
// Threads: several threads read different shards at the same time, and reads may block. Any thread may read the
// counters.
#pragma once

#include <millrace/base/clock.hpp>
#include <millrace/measure/meters/run_statistics.hpp>
#include <millrace/measure/meters/trace_range.hpp>
#include <millrace/measure/values/run_stats.hpp>
#include <millrace/read/stage/reorder_buffer.hpp>
#include <millrace/sync/doorbell.hpp>
#include <millrace/sync/start_thread.hpp>
#include <millrace/work/schedule/dispatcher.hpp>
#include <millrace/work/segment/sample_names.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// The limits of a read stage. read_stage_limit limits the number of I/O threads that may read at a time; the other
// threads sleep. read_ahead_limit limits the bytes that are read ahead.
//
// Errors: none. Threads: read_stage_limit is thread-safe. rest() blocks the calling thread until it may read, or
// `stopped` is true. After `stopped` is set, call wake().

// The maximum number of bytes that are read ahead. The limit is 64 MiB at first. If a reader has waited because of the
// limit, and the workers have no samples at the end of a later read, the limit doubles. Any thread may call bytes().
// The other functions require the lock of the read stage.

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
  /// Records the number of samples that wait for the workers at the end of a read. At the start of a run, no samples
  /// wait yet. Therefore a call with 0 has no effect before the first call with a larger number.
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
class read_stage_limit {
 public:
  /// Allows all `threads` threads to read. With 0 threads, the trainer (the thread that calls next()) reads, and counts
  /// as one thread.
  explicit read_stage_limit(std::size_t threads)
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

  /// Returns the time in nanoseconds during which threads were allowed to read, summed over all threads.
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

// chunk_clock decides whether a reader passes on a chunk of samples to the workers although the chunk is not full. The
// clock is checked only after 1, 4, 16 and 64 samples. If the workers are idle, a chunk ends at the first check after
// 20 us. If the workers are busy, a chunk ends early only at 64 samples (a quarter of a full chunk), and only if the
// read lasted more than 1 ms. Cost: one comparison for most samples.

/// The time since a chunk began, and its number of samples.
class chunk_clock {
 public:
  static constexpr std::size_t full_samples = 256;   ///< number of samples of a full chunk
  static constexpr std::uint64_t idle_ns = 20'000, long_ns = 1'000'000;

  explicit chunk_clock(std::uint64_t start_ns) noexcept : start_ns_(start_ns) {}

  /// Counts a sample, and returns whether the chunk ends with this sample. `workers_idle` returns whether the workers
  /// are idle.
  template <class Idle, class Now = decltype(&steady_now_ns)>
  bool ends_chunk(const Idle& workers_idle, const Now& now_ns = &steady_now_ns) {
    if (++samples_ != next_check_) return false;
    next_check_ *= 4;
    const bool idle = workers_idle();
    if (!idle && samples_ < full_samples / 4) return false;
    return now_ns() - start_ns_ > (idle ? idle_ns : long_ns);
  }

 private:
  std::uint64_t start_ns_;
  std::size_t samples_ = 0, next_check_ = 1;
};

/// The interface between a session and its read stage. Any thread may call any member.
class read_stage : public pipeline_node {
 public:
  /// A chunk ends when it reaches one of these limits. With its last sample, a chunk may exceed chunk_bytes.
  static constexpr std::size_t chunk_bytes = std::size_t{256} << 10, chunk_samples = chunk_clock::full_samples;

  /// Returns the bytes read since the start.
  virtual std::uint64_t bytes_read() const noexcept = 0;
  /// Returns the samples read since the start.
  virtual std::uint64_t samples_read() const noexcept = 0;
  /// Returns the nanoseconds that reading threads were busy, summed over the threads.
  virtual std::uint64_t busy_ns() const noexcept = 0;
  /// Returns the number of I/O threads that may read now. Returns 0 if the trainer reads.
  virtual std::size_t threads() const noexcept = 0;
  /// Returns the bytes of samples that were read, but that no worker has claimed yet.
  virtual std::size_t read_ahead_bytes() const noexcept = 0;
  /// Returns the current maximum of read_ahead_bytes(). For slow storage, this maximum grows.
  virtual std::size_t read_ahead_limit_bytes() const noexcept = 0;
  /// Registers the table that receives the name of each sample. Call it before start(), if batches have keys.
  virtual void name_samples(std::shared_ptr<sample_names> names) = 0;
  /// Lets the stage continue after unreadable samples, if the source can continue. The stage passes on a damaged
  /// sample instead of an error. Call it before start().
  virtual void continue_after_damage() = 0;

  /// Returns `why`, the error that ends the run. The source may add an explanation of the cause.
  virtual std::exception_ptr explain(std::exception_ptr why) const { return why; }

  using pipeline_node::add_to;
  /// Sets the reading counters of `s`.
  void add_to(run_stats& s) const noexcept {
    s.samples_read = samples_read();
    s.bytes_read = bytes_read();
    s.read_busy_ns = busy_ns();
    s.io_threads = threads();
  }
};

/// Reads chunks from a source on I/O threads, and updates the counters of a read stage.
template <class Source>
class read_stage_base : public read_stage, public space_listener {
 public:
  using item = typename Source::item;

  MILLRACE_RARE ~read_stage_base() override = default;

  std::uint64_t bytes_read() const noexcept override { return bytes_read_.load(std::memory_order_relaxed); }
  std::uint64_t samples_read() const noexcept override { return samples_read_.load(std::memory_order_relaxed); }
  std::uint64_t busy_ns() const noexcept override { return busy_ns_.load(std::memory_order_relaxed); }
  void add_to(flow_statistics& f, std::uint64_t now_ns) const override;

  std::string waits(std::uint64_t now_ns) const override;
  void add_to(timeline& t, std::uint64_t start_ns) const override;
  void name_samples(std::shared_ptr<sample_names> names) override;
  void continue_after_damage() override { tolerates_damage_ = true; }
  std::exception_ptr explain(std::exception_ptr why) const override;

  void set_active(const concurrency_counts& open) override;
  void start() override;
  void space_freed() noexcept override;
  void stop() noexcept override;
  void join() noexcept override;
  std::size_t threads() const noexcept override { return io_threads_ == 0 ? 0 : limit_.open(); }
  std::size_t read_ahead_limit_bytes() const noexcept override { return ahead_.bytes(); }

 protected:
  using shard = open_shard<Source>;

  /// Samples that were read, but are not yet in the queue of the shard.
  struct chunk {
    std::vector<sample<item>> samples{};
    std::size_t bytes = 0;
    std::exception_ptr error{};
    bool more = true;   // whether more samples may follow
  };
  /// A part of a shard that a thread should read.
  struct portion {
    reorder_buffer<Source>* of = nullptr;
    shard* from = nullptr;   // null if there is nothing to read now
    std::size_t most = 0;    // maximum number of samples
    bool in_turn = false;    // whether all later shards wait for this shard
  };

  /// The number of I/O threads, and the maximum bytes that they read ahead.
  struct base_options {
    std::size_t threads, read_ahead_bytes;
  };
  read_stage_base(const Source& source, sample_sink<item>& next, const base_options& o);

  // ---- under mutex_ ----

  /// Passes on waiting samples. Returns whether samples were passed on.
  virtual bool pass_on() = 0;
  /// Returns the part of a shard that a thread should read next.
  virtual portion find_work() = 0;
  /// Returns whether samples or readers waited for space at the last pass_on().
  virtual bool needs_space() = 0;
  /// Ends the run. An error is delivered in place of the next sample.
  virtual void finish(std::exception_ptr error) = 0;

  /// Reads samples of a shard without the lock, and appends them to the shard's buffer. Opens the shard before its
  /// first sample, and ends it after its last sample. `read` must be empty, and is empty after the call.
  void read_into(std::unique_lock<std::mutex>& lock, const portion& work, chunk& read);

  // ---- for any thread ----

  /// Returns the name of the shard without its folders, for profilers.
  std::string name_of(const shard& from) const;
  std::string full_name_of(const shard& from) const;

  const Source* const source_;
  sample_sink<item>* const next_;
  std::mutex mutex_;
  read_stage_limit limit_;
  read_ahead_limit ahead_;   // guarded by mutex_
  std::atomic<bool> stopped_{false};
  std::atomic<std::uint64_t> passed_on_{0};   // number of samples passed on in order; set only by shard_read_stage
  chunk read_by_advance_;                     // used only without I/O threads

 private:
  static constexpr bool metered = requires(const Source& s) { s.reads(); };
  read_meter& meter() const noexcept;

  /// The loop of an I/O thread: reads until the stage is stopped. `thread` is the number of the thread, from 0.
  void work(std::size_t thread);
  void work_until_stopped(std::size_t thread, std::unique_lock<std::mutex>& lock, chunk& read);
  /// Passes on waiting samples. Returns true if no samples were passed on, and the workers have no samples. In this
  /// state, the workers will never free space.
  bool is_stalled();
  /// Returns whether another thread would find work while this thread reads `mine`.
  bool finds_other_work(const portion& mine);
  /// Requests that one thread is woken when space becomes free. Returns false if space is already free.
  bool request_space();
  /// Requests that one thread is woken when the workers have processed half of the samples that now wait for them.
  /// Returns false if the workers have already processed this half.
  bool request_wake();
  /// Wakes one thread, which searches for work.
  void wake_one() noexcept;

  void read_chunk(chunk& read, const portion& work);
  /// Reads samples of a shard until the chunk is full, the read is slow, or the shard ends.
  void read_until_full(chunk& read, const portion& work, chunk_clock clock);
  /// Appends the next sample of a shard to the chunk. Returns false at the end of the shard.
  bool append_sample(chunk& read, shard& from);
  void name_sample(shard& from, sample<item>& s);
  void count_chunk(const chunk& read, bool in_turn, std::uint64_t ns) noexcept;
  /// Reads the next sample of an open shard. Returns false at the end of the shard.
  bool read_sample(shard& from, sample<item>& s);
  /// If a file next to the shard states the shard's number of samples, marks the rest of the shard as lost and returns
  /// true.
  bool lose_rest(shard& from, const std::exception_ptr& why) const;
  /// Creates the next damaged sample of a lost shard. Returns false after the last one.
  bool create_lost_sample(shard& from, sample<item>& s) const;
  std::exception_ptr located(const shard& from) const;

  const std::size_t io_threads_;   // with 0, advance() reads
  std::vector<std::thread> threads_;
  std::atomic<std::uint64_t> wake_below_{0};
  std::atomic<bool> wake_pending_{false};   // the thread that resets it must search for work
  doorbell wakeups_;
  std::shared_ptr<sample_names> names_;
  bool tolerates_damage_ = false;
  mutable read_meter chunks_;   // measures the reading of complete chunks
  const read_meter::statistics before_;
  std::atomic<std::uint64_t> bytes_read_{0}, samples_read_{0}, busy_ns_{0}, in_turn_ns_{0}, in_turn_samples_{0};
};

}}}   // namespace millrace::detail

#include <millrace/read/stage/read_stage_base.tpl.hpp>
