// Stores keys, renews them before they expire, and searches for new keys while a server refuses the current keys.
//
//   mr::detail::key_provider keys([&] { return sources.find(); }, {.now_seconds = env.now_seconds});
//   const auto now = keys.get();                  // searches in the first call, and before the keys expire
//   keys.accepted(now.keys);                      // the server returned the object
//   const auto remedy = keys.refused(now.keys);   // whether to send the request again now, later, or never
//
// During a run, other programs often replace the keys. These programs may write the new file in steps, or a few seconds
// too late. Therefore refusals and failed searches are treated as transient, and searches are repeated with increasing
// pauses. If the server has accepted keys before, the searches end after `retry_seconds`. Otherwise the keys are
// probably wrong, and the searches end after 7 s. If the keys are from the environment, which does not change, the
// searches end at once.
// Errors: get() throws keys_pending while the searches continue, and the error of the last search after they have
// ended. If no source is configured, get() throws no_keys_error at once. Threads: any thread. One thread searches while
// the others wait.
#pragma once

#include <millrace/adapt/remote/store/security_token_service.hpp>
#include <millrace/base/error.hpp>
#include <millrace/sync/notice_outlet.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The error if no source of keys is configured.
class no_keys_error : public setup_error {
 public:
  using setup_error::setup_error;
};

/// Thrown if no keys are available now, but the next search may find keys.
class keys_pending : public std::exception {
 public:
  explicit keys_pending(double seconds) noexcept : pause_seconds(seconds) {}
  const char* what() const noexcept override { return "the search for keys continues"; }

  double pause_seconds;   ///< time until the next search
};

/// The action after a server has refused a request.
struct remedy {
  enum class kind : std::uint8_t { none, at_once, later };
  kind what = kind::none;     ///< whether to build and send the request again
  double pause_seconds = 0;   ///< for kind::later: the pause before the next request
  /// For kind::none: number and duration of the searches, to be appended to the error; may be empty.
  std::string attempted{};
};

/// Options of searches for keys.
struct key_search_options {
  double retry_seconds = 180;   ///< duration of the searches, in seconds, if the server has accepted keys before
  notice_function notice{};     ///< receives a notice about each series of searches
};

/// Provides the keys for requests.
class key_provider {
 public:
  static constexpr std::int64_t margin_seconds = 300, pause_seconds = 60;
  static constexpr std::int64_t unproven_seconds = 7, longest_pause_seconds = 16;

  using finder = std::function<provided_keys()>;

  struct settings {
    std::function<std::int64_t()> now_seconds;   ///< seconds since 1970
    key_search_options search_options{};
  };

  key_provider(finder find, settings s)
      : find_(std::move(find)), settings_(std::move(s)), notices_(settings_.search_options.notice) {}

  provided_keys get();
  /// Records that the server accepted a request that was signed with these keys.
  void accepted(const signing_keys& keys);
  /// Records that the server refuses these keys. Returns whether to send the request again with other keys, now or
  /// later.
  remedy refused(const signing_keys& keys);
  /// Records a failure to read the environment or a file as a failed search. Call this function inside a catch block.
  [[noreturn]] void search_failed();

 private:
  /// A period of refusals or failed searches.
  struct outage {
    std::int64_t since_seconds = 0, last_seconds = 0, next_search = 0;
    int searches = 0;
    std::exception_ptr failure{};   // the error of the last search; null if the search returned the same keys
  };

  /// Returns whether the outage is too old to be related to a failure at `now`.
  static bool is_old(const outage& t, std::int64_t now) noexcept {
    return now > t.last_seconds + 2 * pause_seconds || now < t.last_seconds - pause_seconds;
  }

  /// Returns whether these are the current keys. Ignores their expiry time.
  bool has_same(signing_keys keys) const;

  void begin_outage(std::int64_t now) {
    outage_.emplace(outage{.since_seconds = now, .last_seconds = now, .next_search = now});
  }

  provided_keys take(provided_keys provided, std::int64_t now);
  void count_search(std::int64_t now) noexcept;
  void search(std::int64_t now);
  /// Records the current exception. Call this function inside a catch block.
  void record_failure(std::int64_t now);
  double allowed_seconds() const noexcept;

  bool is_over(std::int64_t now) const noexcept {
    return static_cast<double>(now - outage_->since_seconds) >= allowed_seconds();
  }

  /// Returns the time until the next search, or until the end of the searches. Sends at most one notice per minute.
  double pause(std::int64_t now);
  [[noreturn]] void fail_or_wait(std::int64_t now);
  std::string count_text(std::int64_t now) const;
  std::string search_summary(std::int64_t now) const;

  const finder find_;
  const settings settings_;
  notice_outlet notices_;
  std::mutex mutex_;   // guards the members below
  std::optional<provided_keys> current_;
  std::int64_t next_try_ = 0;
  std::optional<outage> outage_;
  std::int64_t next_report_ = 0;   // separate from outage_, because a success resets outage_
  bool accepted_ = false;          // whether the server has accepted keys before
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/store/impl/key_provider.inl>
#endif
