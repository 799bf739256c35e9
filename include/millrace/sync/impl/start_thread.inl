// Definitions for start_thread.hpp.
#pragma once

#include <millrace/sync/start_thread.hpp>

#include <millrace/base/error.hpp>

#include <system_error>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE std::thread start_thread(std::function<void()> body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error& why) {
    throw io_error(std::string("the system refused to start a thread: ") + why.code().message(),
                   "Raise the thread limits (ulimit -u, the cgroup's pids.max), or use fewer threads");
  }
}

MILLRACE_RARE void start_threads(std::vector<std::thread>& all, std::size_t count,
                                 const std::function<void(std::size_t)>& body) {
  all.reserve(all.size() + count);
  for (std::size_t i = 0; i < count; ++i) all.push_back(start_thread([body, i] { body(i); }));
}

}}}   // namespace millrace::detail
