// Performs transfers of libcurl on one thread. The thread waits for the sockets of all transfers by epoll.
//
//   mr::detail::curl_transfers transfers;
//   mr::detail::curl_easy handle;
//   curl_multi_add_handle(transfers.get(), handle.get());
//   transfers.wait(10);      // until a socket is ready, wake() was called, or 10 ms have passed
//   transfers.transfer();    // then curl_multi_info_read(transfers.get(), &left)
//
// Call transfer() instead of curl_multi_perform(), which calls poll() for each transfer. transfer() processes only the
// sockets that are ready.
// Errors: io_error if no file descriptor is available; std::bad_alloc. Threads: any thread may call wake(). Only one
// thread may call the other functions.
#pragma once

#include <millrace/adapt/remote/store/curl_handle.hpp>
#include <millrace/io/file/unique_fd.hpp>

#include <sys/epoll.h>

#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A multi handle and its sockets.
class curl_transfers {
 public:
  curl_transfers();

  CURLM* get() const noexcept { return multi_.get(); }
  /// Ends the current wait(). If no thread is in wait(), the next wait() returns at once.
  void wake() noexcept;
  void wait(int max_ms) noexcept;
  /// Receives and sends the bytes of sockets that were ready at the end of wait(), and starts new transfers.
  void transfer() noexcept;

 private:
  static int watch(CURL* of, curl_socket_t socket, int events, void* self, void* data) noexcept;
  static int set_timer(CURLM* of, long ms, void* self) noexcept;

  unique_fd epoll_, event_;
  epoll_event ready_[64];
  int ready_count_ = 0;
  std::int64_t due_ns_ = -1;   // time of the next call that libcurl needs; -1 if it needs none
  // The last member, so that it is destroyed before epoll_: its destructor removes sockets from epoll_.
  curl_multi multi_;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/store/impl/curl_transfers.inl>
#endif
