// The workers of a feeder: they compute the rows of requests in chunks, so that all workers share each request.
//
//   mr::detail::feeder_work work(rows, 8);
//   auto job = std::make_shared<mr::detail::feeder_job>();
//   job->range = range, job->done = [&] { answer(job->status, job->parts); };
//   mr::detail::feeder_work::jobs one{job};
//   work.submit(one);                                    // done() is called once
//
// Errors: status 400 for a wrong range, 500 for another error, 503 after stop(). Threads: any thread may call submit().
// stop() ends all jobs, and calls their done(), before it returns.
#pragma once

#include <millrace/adapt/feeders/row_maker.hpp>
#include <millrace/base/clock.hpp>
#include <millrace/measure/meters/trace_range.hpp>
#include <millrace/sync/start_thread.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A request for rows.
struct feeder_job {
  row_range range{};
  std::function<void()> done{};
  unsigned status = 200;
  std::string error{};
  std::vector<std::vector<std::byte>> parts{};   ///< the body

  std::vector<ordered_sample> samples{};
  std::size_t chunk_rows = 0;
  std::size_t next = 0, missing = 0;   // chunks; guarded by the mutex of feeder_work
};

/// Computes rows on its threads.
class feeder_work {
 public:
  feeder_work(row_maker& rows, std::size_t workers) : rows_(rows), workers_(workers) {
    try {
      start_threads(threads_, workers, [this](std::size_t worker) {
        name_worker_thread("millrace-feeder");
        work(worker);
      });
    } catch (...) {
      stop();
      throw;
    }
  }
  ~feeder_work() { stop(); }
  feeder_work(const feeder_work&) = delete;
  feeder_work& operator=(const feeder_work&) = delete;

  using jobs = std::list<std::shared_ptr<feeder_job>>;
  /// Submits the only job in the list `one`, and removes it from the list. After stop(), ends the job immediately.
  void submit(jobs& one) noexcept {
    {
      const std::lock_guard lock(mutex_);
      if (!stopping_) queue_.splice(queue_.end(), one);   // allocates nothing
    }
    changed_.notify_one();
    end(one);
  }
  void stop() noexcept {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& t : threads_)
      if (t.joinable()) t.join();
    end(queue_);
  }

  std::size_t workers() const noexcept { return workers_; }
  /// Computed rows, rows that could not be computed, and the time of all workers together.
  std::atomic<std::uint64_t> computed{0}, failed{0}, busy_ns{0};

 private:
  static constexpr std::size_t max_chunk_rows = 16;

  void work(std::size_t worker) noexcept {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (stopping_) return;
      const std::uint64_t start = steady_now_ns();
      const std::shared_ptr<feeder_job> job = queue_.front();
      bool is_done = false;
      if (job->parts.empty()) {
        jobs one;   // other workers plan the next jobs
        one.splice(one.end(), queue_, queue_.begin());
        lock.unlock();
        guarded(*job, [&] { plan(*job); });
        lock.lock();
        is_done = job->status != 200;
        if (!is_done) queue_.splice(queue_.begin(), one);
        changed_.notify_all();
      } else {
        const std::size_t chunk = job->next++;
        if (job->next == job->parts.size()) queue_.pop_front();
        lock.unlock();
        guarded(*job, [&] { compute(*job, chunk, worker); });
        lock.lock();
        is_done = --job->missing == 0;
      }
      lock.unlock();
      busy_ns += steady_now_ns() - start;
      if (is_done) job->done();
      lock.lock();
    }
  }

  void plan(feeder_job& job) {
    job.samples = rows_.samples_of(job.range);
    const std::size_t rows = job.samples.size();
    job.chunk_rows = std::clamp<std::size_t>(rows / workers_, 1, max_chunk_rows);
    job.missing = (rows - 1) / job.chunk_rows + 1;
    job.parts.resize(job.missing);
  }

  void compute(feeder_job& job, std::size_t chunk, std::size_t worker) {
    const std::size_t first = chunk * job.chunk_rows;
    const std::size_t count = std::min(job.chunk_rows, job.samples.size() - first);
    std::vector<std::byte>& body = job.parts[chunk];
    body.reserve(count * (feeder_row_decoder::header_bytes + rows_.run().max_row_bytes));
    const std::size_t missing = rows_.compute(std::span(job.samples).subspan(first, count), worker, body);
    failed += missing;
    computed += count - missing;
  }

  template <class Act>
  void guarded(feeder_job& job, const Act& act) noexcept {
    try {
      act();
    } catch (const setup_error& e) {
      fail(job, 400, e.what());
    } catch (const std::exception& e) {
      fail(job, 500, e.what());
    } catch (...) {
      fail(job, 500, "unknown exception");
    }
  }
  void fail(feeder_job& job, unsigned status, const char* why) noexcept {
    const std::lock_guard lock(mutex_);
    job.status = status;
    try {
      job.error = why;
    } catch (...) {}
  }
  /// Ends jobs that no worker uses.
  void end(jobs& all) noexcept {
    for (const auto& job : all) {
      fail(*job, 503, "the feeder ends");
      job->done();
    }
    all.clear();
  }

  row_maker& rows_;
  const std::size_t workers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  jobs queue_;   // guarded by mutex_, like the next line
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}}}   // namespace millrace::detail
