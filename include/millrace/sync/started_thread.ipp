// Defines what started_thread.hpp declares.
#pragma once

#include <millrace/sync/started_thread.hpp>

#include <millrace/base/error.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE void throw_no_thread(const std::system_error& why) {
  throw io_error(std::string("the system refused to start a thread: ") + why.code().message(),
                 "Raise the limits of threads (ulimit -u, the cgroup's pids.max), or use fewer");
}

}}}  // namespace millrace::detail
