// Starts a thread, or says that the system refused one.
//
//   std::thread reader = mr::detail::started_thread([&] { read_all(); });
//   mr::detail::start_threads(all, 4, [&](std::size_t i) { work(i); });   // 4 more in std::vector<std::thread> all
//
// Errors: io_error with the system's reason; the threads that were started before run on. Threads: any.
#pragma once

#include <millrace/base/error.hpp>

#include <cstddef>
#include <functional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Starts a thread.
inline std::thread started_thread(std::function<void()> body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error& why) {
    throw io_error(std::string("the system refused to start a thread: ") + why.code().message(),
                   "Raise the limits of threads (ulimit -u, the cgroup's pids.max), or use fewer");
  }
}

/// Adds `count` threads, of which the i-th runs body(i). Those that are there already stay where they are.
inline void start_threads(std::vector<std::thread>& all, std::size_t count,
                          const std::function<void(std::size_t)>& body) {
  all.reserve(all.size() + count);
  for (std::size_t i = 0; i < count; ++i) all.push_back(started_thread([body, i] { body(i); }));
}

}}}  // namespace millrace::detail
