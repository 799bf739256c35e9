// Definitions for run_concurrently.hpp.
#pragma once

#include <millrace/io/file/run_concurrently.hpp>

#include <millrace/sync/slow_step.hpp>
#include <millrace/sync/start_thread.hpp>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE void run_concurrently(const run_concurrently_options& o, const std::function<void(std::size_t)>& act) {
  slow_step step(o.step, {.items = o.names.size(), .notices = o.notices, .after_ns = o.report_after_ns});
  run_concurrently(o.names.size(), o.max_threads, [&](std::size_t i) {
    const slow_step::item here(step, o.names.view(i));
    act(i);
  });
}

MILLRACE_RARE void run_concurrently(std::size_t count, std::size_t max_threads,
                                    const std::function<void(std::size_t)>& act) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::size_t failed = count;
  std::exception_ptr first_error;
  const auto work = [&](std::size_t) {
    for (std::size_t i = 0; (i = next.fetch_add(1)) < count;) try {
        act(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (i < failed) first_error = std::current_exception();
        failed = std::min(failed, i);
      }
  };
  std::vector<std::thread> others;
  try {
    start_threads(others, std::max<std::size_t>(std::min(count, max_threads), 1) - 1, work);
  } catch (...) {   // too few threads: the calling thread executes the remaining calls
  }
  work(0);
  for (auto& t : others) t.join();
  if (first_error) std::rethrow_exception(first_error);
}

}}}   // namespace millrace::detail
