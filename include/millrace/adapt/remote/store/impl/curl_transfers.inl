// Definitions for curl_transfers.hpp.
#pragma once

#include <millrace/adapt/remote/store/curl_transfers.hpp>

#include <millrace/base/clock.hpp>

#include <sys/eventfd.h>

#include <algorithm>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE curl_transfers::curl_transfers()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)), event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  require_curl();
  epoll_event wakes{.events = EPOLLIN, .data = {.fd = event_.get()}};
  if (!epoll_ || !event_ || ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, event_.get(), &wakes) != 0)
    throw io_error("the network thread cannot open its file descriptors", "Increase `ulimit -n`", {.stage = "remote"});
  multi_.reset(curl_multi_init());
  if (!multi_) throw std::bad_alloc();
  curl_multi_setopt(multi_.get(), CURLMOPT_SOCKETFUNCTION, &curl_transfers::watch);
  curl_multi_setopt(multi_.get(), CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_.get(), CURLMOPT_TIMERFUNCTION, &curl_transfers::set_timer);
  curl_multi_setopt(multi_.get(), CURLMOPT_TIMERDATA, this);
}

MILLRACE_INLINE int curl_transfers::watch(CURL*, curl_socket_t socket, int events, void* self, void*) noexcept {
  const int epoll = static_cast<curl_transfers*>(self)->epoll_.get();
  epoll_event e{.events = 0, .data = {.fd = socket}};
  if ((events & CURL_POLL_IN) != 0) e.events |= EPOLLIN;
  if ((events & CURL_POLL_OUT) != 0) e.events |= EPOLLOUT;
  if (events == CURL_POLL_REMOVE) ::epoll_ctl(epoll, EPOLL_CTL_DEL, socket, nullptr);
  else if (::epoll_ctl(epoll, EPOLL_CTL_MOD, socket, &e) != 0 && ::epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &e) != 0)
    return -1;
  return 0;
}

MILLRACE_INLINE int curl_transfers::set_timer(CURLM*, long ms, void* self) noexcept {
  static_cast<curl_transfers*>(self)->due_ns_ = ms < 0 ? -1 : read_clock_ns(CLOCK_MONOTONIC) + 1'000'000 * ms;
  return 0;
}

MILLRACE_INLINE void curl_transfers::wake() noexcept { static_cast<void>(::eventfd_write(event_.get(), 1)); }

MILLRACE_INLINE void curl_transfers::wait(int max_ms) noexcept {
  std::int64_t ms = max_ms;
  if (due_ns_ >= 0)
    ms = std::clamp<std::int64_t>((due_ns_ - read_clock_ns(CLOCK_MONOTONIC) + 999'999) / 1'000'000, 0, ms);
  ready_count_ = ::epoll_wait(epoll_.get(), ready_, std::size(ready_), static_cast<int>(ms));
}

MILLRACE_INLINE void curl_transfers::transfer() noexcept {
  int running = 0;
  for (const epoll_event& e : std::span(ready_, static_cast<std::size_t>(std::max(ready_count_, 0)))) {
    eventfd_t wakes = 0;
    if (e.data.fd == event_.get()) {
      ::eventfd_read(event_.get(), &wakes);
      continue;
    }
    const int events = ((e.events & (EPOLLIN | EPOLLHUP)) != 0 ? CURL_CSELECT_IN : 0) |
                       ((e.events & EPOLLOUT) != 0 ? CURL_CSELECT_OUT : 0) |
                       ((e.events & EPOLLERR) != 0 ? CURL_CSELECT_ERR : 0);
    curl_multi_socket_action(multi_.get(), e.data.fd, events, &running);
  }
  ready_count_ = 0;
  if (due_ns_ < 0 || read_clock_ns(CLOCK_MONOTONIC) < due_ns_) return;
  due_ns_ = -1;
  curl_multi_socket_action(multi_.get(), CURL_SOCKET_TIMEOUT, 0, &running);
}

}}}   // namespace millrace::detail
