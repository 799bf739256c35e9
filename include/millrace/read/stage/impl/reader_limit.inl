// Defines what reader_limit.hpp declares.
#pragma once

#include <millrace/read/stage/reader_limit.hpp>

#include <millrace/base/clock.hpp>

#include <algorithm>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE reader_limit::reader_limit(std::size_t threads)
    : open_(std::max<std::size_t>(1, threads)), all_(open_.load()), since_ns_(steady_now_ns()) {}

MILLRACE_INLINE void reader_limit::open(std::size_t count) noexcept {
  {
    const std::lock_guard lock(mutex_);
    const std::uint64_t now = steady_now_ns();
    open_ns_ += open_.load() * (now - since_ns_);
    since_ns_ = now;
    open_.store(std::clamp<std::size_t>(count, 1, all_));
  }
  bell_.ring();
}

MILLRACE_INLINE void reader_limit::rest(std::size_t thread, const std::atomic<bool>& stopped) {
  bell_.wait([&] { return stopped.load() || !closed(thread); });
}

MILLRACE_INLINE std::uint64_t reader_limit::open_ns(std::uint64_t now_ns) const noexcept {
  const std::lock_guard lock(mutex_);
  return open_ns_ + open_.load() * (now_ns - std::min(now_ns, since_ns_));
}

}}}  // namespace millrace::detail
