// Passes the notices of a session to its user.
//
//   mr::detail::notice_outlet notices(options.notice);     // empty: lines on stderr
//   notices.deliver({.kind = mr::notice_kind::data, .text = "the shard has no sample"});
//
// Errors: none; base/notice.hpp describes an exception of the user's function.
// Threads: any; one at a time delivers.
#pragma once

#include <millrace/base/notice.hpp>

#include <cstdio>
#include <functional>
#include <mutex>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Delivers the notices of one session, one at a time.
class notice_outlet {
 public:
  /// `to` receives the notices; empty: they are printed to stderr.
  explicit notice_outlet(std::function<void(const notice&)> to = {}) : to_(std::move(to)) {}
  /// Delivers a notice. Any thread.
  void deliver(const notice& n) noexcept {
    const auto print = [&n] { std::fprintf(stderr, "millrace: %s\n", n.text.c_str()); };
    try {
      const std::lock_guard lock(mutex_);
      if (!to_) return print();
      to_(n);
    } catch (const std::exception& e) {
      print();
      std::fprintf(stderr, "millrace: the notice function threw: %s\n", e.what());
    } catch (...) {
      print();
      std::fprintf(stderr, "millrace: the notice function threw an exception\n");
    }
  }

 private:
  const std::function<void(const notice&)> to_;
  std::recursive_mutex mutex_;   // the user's function may cause a notice itself
};

}}}  // namespace millrace::detail
