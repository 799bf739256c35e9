// Keeps keys, and renews them before they expire.
//
//   mr::detail::key_provider keys([&] { return sources.find(); }, around.now_seconds);
//   const auto now = keys.get();              // looks for keys at the first call, and five minutes before they expire
//   if (keys.renew(now.keys)) try_again();    // the server says that these have expired
//
// Errors: those of the finder. While old keys are good, a renewal that fails is tried again a minute later.
// Threads: any; one looks while the others wait.
#pragma once

#include <millrace/adapt/remote/store/credential_sources.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The keys that requests are signed with now.
class key_provider {
 public:
  static constexpr std::int64_t margin_seconds = 300, pause_seconds = 60, failure_seconds = 5;

  using finder = std::function<found_keys()>;

  key_provider(finder find, std::function<std::int64_t()> now_seconds)
      : find_(std::move(find)), now_seconds_(std::move(now_seconds)) {}

  found_keys get() {
    const std::lock_guard lock(mutex_);
    const std::int64_t now = now_seconds_();
    if (found_ && (now < found_->keys.expires_seconds - margin_seconds ||
                   (now < next_try_ && now < found_->keys.expires_seconds)))
      return *found_;
    if (failure_ && now < next_try_) std::rethrow_exception(failure_);
    try {
      look(now);
    } catch (...) {
      if (found_ && now < found_->keys.expires_seconds) {
        next_try_ = now + pause_seconds;
        return *found_;
      }
      // All requests of a run ask at once, and each failure may have taken seconds.
      failure_ = std::current_exception();
      next_try_ = now + failure_seconds;
      throw;
    }
    return *found_;
  }

  /// Looks for others than those that a server refuses. Returns whether there are some.
  bool renew(const signing_keys& refused) {
    const std::lock_guard lock(mutex_);
    if (found_ && found_->keys != refused) return true;
    const std::int64_t now = now_seconds_();
    if (refused_at_ && now < *refused_at_ + pause_seconds) return false;
    refused_at_ = now;
    try {
      look(now);
    } catch (const error&) {
      return false;   // the server's refusal says more
    }
    return found_->keys != refused;
  }

 private:
  void look(std::int64_t now) {
    found_ = find_();
    failure_ = nullptr;
    next_try_ = now + pause_seconds;
  }

  finder find_;
  std::function<std::int64_t()> now_seconds_;
  std::mutex mutex_;
  std::optional<found_keys> found_;
  std::exception_ptr failure_;
  std::int64_t next_try_ = 0;
  std::optional<std::int64_t> refused_at_;
};

}}}  // namespace millrace::detail
