// Passes notices to the user's function, or prints them to stderr.
//
//   mr::detail::notice_outlet notices(options.notice);     // empty: lines on stderr
//   notices.deliver({.kind = mr::notice_kind::data, .text = "the shard has no sample"});
//
// Errors: none. base/notice.hpp describes the handling of exceptions from the user's function.
// Threads: any thread may call deliver(). Only one thread at a time delivers notices.
#pragma once

#include <millrace/base/notice.hpp>

#include <exception>
#include <mutex>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Delivers the notices of one session, source, storage or log.
class notice_outlet {
 public:
  /// `to` receives the notices. If `to` is empty, notices are printed to stderr.
  explicit notice_outlet(notice_function to = {}) : to_(std::move(to)) {}
  notice_outlet(const notice_outlet&) = delete;
  notice_outlet& operator=(const notice_outlet&) = delete;

  /// Delivers a notice. Any thread may call this function.
  MILLRACE_RARE void deliver(const notice& n) noexcept {
    try {
      const std::lock_guard lock(mutex_);
      if (!to_) return print_notice(n.text);
      to_(n);
    } catch (const std::exception& e) {
      print_notice(n.text);
      print_notice("the notice function threw: ", e.what());
    } catch (...) {
      print_notice(n.text);
      print_notice("the notice function threw an exception");
    }
  }
  /// Returns whether the notices are printed to stderr.
  bool prints() const noexcept { return !to_; }
  /// Returns false if the notice function is mr::quiet, which drops most informational notices. Otherwise returns true.
  bool informs() const noexcept { return to_.informs(); }

 private:
  const notice_function to_;
  std::recursive_mutex mutex_;   // the user's function may cause a notice itself
};

}}}   // namespace millrace::detail
