// Waits for SIGTERM or SIGINT, which are blocked in this thread and in the threads that it starts.
//
//   const mr::detail::stop_signals stop;                 // before other threads start; its destructor unblocks
//   while (!stop.wait_at_most(1'000)) work();            // milliseconds
//
// All other threads must block these signals too: a signal ends the process if any thread accepts it. Errors: none.
// Threads: the thread that creates the object waits and destroys it.
#pragma once

#include <millrace/base/version.hpp>

#include <signal.h>
#include <time.h>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Receives the signals that end a program.
class stop_signals {
 public:
  stop_signals() noexcept {
    ::sigemptyset(&signals_);
    ::sigaddset(&signals_, SIGTERM);
    ::sigaddset(&signals_, SIGINT);
    ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  ~stop_signals() {
    while (wait_at_most(0)) {}   // repeated signals would end the process
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  stop_signals(const stop_signals&) = delete;
  stop_signals& operator=(const stop_signals&) = delete;

  /// Returns whether a signal has arrived, after at most `milliseconds`.
  bool wait_at_most(int milliseconds) const noexcept {
    const timespec time{.tv_sec = milliseconds / 1'000, .tv_nsec = milliseconds % 1'000 * 1'000'000L};
    return ::sigtimedwait(&signals_, nullptr, &time) > 0;
  }

 private:
  sigset_t signals_{}, before_{};
};

}}}  // namespace millrace::detail
