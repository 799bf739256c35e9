// Stores keys, renews them before they expire, and searches for new ones while a server refuses them.
//
//   mr::detail::key_provider keys([&] { return sources.find(); }, {.now_seconds = env.now_seconds});
//   const auto now = keys.get();                  // searches for keys on the first call, and before they expire
//   keys.accepted(now.keys);                      // the server returned the object
//   const auto remedy = keys.refused(now.keys);   // the server refuses these keys: send again now, later, or never
//
// Keys are often replaced during a run, by a program that writes its file in steps or some seconds late. Therefore a
// refusal is transient, and so is a failed search. Searches are repeated after 1, 2, 4, 8, 16, 16, ... s. They end
// after `retry_seconds` if the server accepted keys before. Keys that it never accepted are probably wrong. In that
// case searches end after 7 s, and at once if the keys are from the environment, which does not change.
// Errors: get() throws keys_pending while there are no keys yet, then the error of the last search, with the number of
// searches and their time. If no source is configured, it throws at once.
// Threads: any; one searches while the others wait.
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

/// No source has keys, not even incomplete ones.
class no_keys_error : public setup_error {
 public:
  using setup_error::setup_error;
};

/// There are no keys now, and the next search may succeed.
class keys_pending : public std::exception {
 public:
  explicit keys_pending(double seconds) noexcept : pause_seconds(seconds) {}
  const char* what() const noexcept override { return "the search for keys continues"; }

  double pause_seconds;   ///< until the next search
};

/// The action after a refusal.
struct remedy {
  enum class kind : std::uint8_t { none, at_once, later };
  kind what = kind::none;        ///< whether to build and send the request again
  double pause_seconds = 0;      ///< before a later one
  std::string attempted{};       ///< for the error of none: the number and time of the searches; may be empty
};

/// How long to search for keys, and the receiver of notices.
struct key_search_options {
  double retry_seconds = 180;   ///< for keys that a server accepts
  notice_function notice{};   ///< receives a notice for each series of searches
};

/// The current keys for requests.
class key_provider {
 public:
  static constexpr std::int64_t margin_seconds = 300, pause_seconds = 60;
  static constexpr std::int64_t unproven_seconds = 7, longest_pause_seconds = 16;

  using finder = std::function<provided_keys()>;

  struct settings {
    std::function<std::int64_t()> now_seconds;   ///< since 1970
    key_search_options search_options{};
  };

  key_provider(finder find, settings s)
      : find_(std::move(find)), settings_(std::move(s)), notices_(settings_.search_options.notice) {}

  provided_keys get();
  /// Records that the server accepted a request that was signed with these keys.
  void accepted(const signing_keys& keys);
  /// Records that the server refuses these keys. Returns whether there are others, or may be soon.
  remedy refused(const signing_keys& keys);
  /// Handles a failure to read the environment or files, as a failed search for keys. Call it inside a catch block.
  [[noreturn]] void search_failed();

 private:
  /// A time of refusals or failed searches, and when it began.
  struct outage {
    std::int64_t since_seconds = 0, last_seconds = 0, next_search = 0;
    int searches = 0;
    std::exception_ptr failure{};   // of the last search; null: it returned the same keys
  };

  /// Returns whether an earlier failure is unrelated to a current one. Clocks may be set back.
  static bool is_old(const outage& t, std::int64_t now) noexcept {
    return now > t.last_seconds + 2 * pause_seconds || now < t.last_seconds - pause_seconds;
  }

  /// Returns whether these are the current keys. The same keys may have a later expiry time.
  bool has_same(signing_keys keys) const;

  void begin_outage(std::int64_t now) {
    outage_.emplace(outage{.since_seconds = now, .last_seconds = now, .next_search = now});
  }

  provided_keys take(provided_keys provided, std::int64_t now);
  void count_search(std::int64_t now) noexcept;
  void search(std::int64_t now);
  /// Call it inside a catch block.
  void record_failure(std::int64_t now);
  double allowed_seconds() const noexcept;

  bool is_over(std::int64_t now) const noexcept {
    return static_cast<double>(now - outage_->since_seconds) >= allowed_seconds();
  }

  /// Returns the time to the next search or to the end. Reports the first pause, and one each minute.
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
  std::int64_t next_report_ = 0;   // requests that were sent earlier may end a failure that continues
  bool accepted_ = false;   // the server accepted keys at least once
};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/store/impl/key_provider.inl>
#endif
