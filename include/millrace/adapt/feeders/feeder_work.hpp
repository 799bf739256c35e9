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
  std::size_t chunk_rows = 0, next = 0;   // `next` is guarded by the mutex of feeder_work
  std::atomic<std::size_t> missing{0};    // chunks
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
      if (!stopping_.load()) new_.splice(new_.end(), one);
    }
    changed_.notify_one();
    if (!one.empty()) static_cast<void>(plan(*one.front()));
  }
  void stop() noexcept {
    {
      const std::lock_guard lock(mutex_);
      stopping_.store(true);
    }
    changed_.notify_all();
    for (std::thread& t : threads_)
      if (t.joinable()) t.join();
  }

  std::size_t workers() const noexcept { return workers_; }
  std::uint64_t computed() const noexcept { return computed_.load(); }
  std::uint64_t failed() const noexcept { return failed_.load(); }
  std::uint64_t busy_ns() const noexcept { return busy_ns_.load(); }

 private:
  static constexpr std::size_t max_chunk_rows = 16;

  void work(std::size_t worker) noexcept {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return stopping_.load() || !new_.empty() || !planned_.empty(); });
      if (new_.empty() && planned_.empty()) return;
      const std::uint64_t start = steady_now_ns();
      if (planned_.empty()) {
        jobs one;
        one.splice(one.end(), new_, new_.begin());
        lock.unlock();
        const bool planned = plan(*one.front());
        lock.lock();
        if (planned) {
          planned_.splice(planned_.end(), one);   // allocates nothing
          changed_.notify_all();
        }
      } else {
        const std::shared_ptr<feeder_job> job = planned_.front();
        const std::size_t chunk = job->next++;
        if (job->next == job->parts.size()) planned_.pop_front();
        lock.unlock();
        compute(*job, chunk, worker);
        lock.lock();
      }
      busy_ns_ += steady_now_ns() - start;
    }
  }

  /// Returns whether the job has chunks to compute. If not, the job is done.
  bool plan(feeder_job& job) noexcept {
    guarded(job, [&] {
      job.samples = rows_.samples_of(job.range);
      const std::size_t rows = job.samples.size();
      job.chunk_rows = std::clamp<std::size_t>(rows / workers_, 1, max_chunk_rows);
      job.parts.resize((rows - 1) / job.chunk_rows + 1);
      job.missing.store(job.parts.size());
    });
    if (job.status == 200) return true;
    job.done();
    return false;
  }

  void compute(feeder_job& job, std::size_t chunk, std::size_t worker) noexcept {
    feeder_job result;   // the rows of this chunk
    guarded(result, [&] {
      const std::size_t first = chunk * job.chunk_rows;
      const std::size_t count = std::min(job.chunk_rows, job.samples.size() - first);
      std::vector<std::byte>& body = job.parts[chunk];
      body.reserve(count * (feeder_row_decoder::header_bytes + rows_.run().max_row_bytes));
      const std::size_t failed = rows_.compute(std::span(job.samples).subspan(first, count), worker, body);
      failed_ += failed;
      computed_ += count - failed;
    });
    if (result.status != 200) {
      const std::lock_guard lock(mutex_);
      job.status = result.status;
      job.error = std::move(result.error);
    }
    if (job.missing.fetch_sub(1) == 1) job.done();
  }

  template <class Act>
  void guarded(feeder_job& job, const Act& act) noexcept {
    try {
      if (stopping_.load()) return set_error(job, 503, "the feeder ends");
      act();
    } catch (const setup_error& e) {
      set_error(job, 400, e.what());
    } catch (const std::exception& e) {
      set_error(job, 500, e.what());
    } catch (...) {
      set_error(job, 500, "unknown exception");
    }
  }
  static void set_error(feeder_job& job, unsigned status, const char* why) noexcept {
    job.status = status;
    try {
      job.error = why;
    } catch (...) {}
  }

  row_maker& rows_;
  const std::size_t workers_;
  std::atomic<std::uint64_t> computed_{0}, failed_{0}, busy_ns_{0};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  jobs new_, planned_;   // guarded by mutex_
  std::vector<std::thread> threads_;
};

}}}   // namespace millrace::detail
