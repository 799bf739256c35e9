// Stores keys, renews them before they expire, and looks for others while a server refuses them.
//
//   mr::detail::key_provider keys([&] { return sources.find(); }, {.now_seconds = around.now_seconds});
//   const auto now = keys.get();                  // looks for keys at the first call, and before they expire
//   keys.accepted(now.keys);                      // the server answered with the object
//   const auto remedy = keys.refused(now.keys);   // the server refuses these keys: send again now, later, or never
//
// Keys are often replaced while a run continues, by a program that writes its file in steps or some seconds late.
// Therefore a refusal is transient, and so is a look-up that fails. New ones follow after 1, 2, 4, 8, 16, 16, ... s.
// They end after `retry_seconds` if the server accepted keys before. Keys that it never accepted are probably wrong.
// Those end after 7 s, and at once if they are from the environment, which does not change.
// Errors: get() throws keys_pending while there are no keys yet, then the error of the last look-up. It says how often
// and how long keys were looked for. Without any place that could have keys, the error is thrown at once.
// Threads: any; one looks while the others wait.
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

/// No place has keys, not even half of one.
class no_keys_error : public setup_error {
 public:
  using setup_error::setup_error;
};

/// There are no keys now, and the next look-up may find some.
class keys_pending : public std::exception {
 public:
  explicit keys_pending(double seconds) noexcept : pause_seconds(seconds) {}
  const char* what() const noexcept override { return "the search for keys continues"; }

  double pause_seconds;   ///< until the next look-up
};

/// The answer to a refusal.
struct remedy {
  enum class kind : std::uint8_t { none, at_once, later };
  kind what = kind::none;        ///< whether the request is addressed again and sent
  double pause_seconds = 0;      ///< before a later one
  std::string tried{};           ///< for the error of none: how often and how long keys were looked for; may be empty
};

/// How long keys are looked for, and who hears of it.
struct key_patience {
  double retry_seconds = 180;   ///< for keys that a server accepts
  notice_function notice{};   ///< receives a notice for each series of look-ups
};

/// The keys that requests are signed with now.
class key_provider {
 public:
  static constexpr std::int64_t margin_seconds = 300, pause_seconds = 60;
  static constexpr std::int64_t unproven_seconds = 7, longest_pause_seconds = 16;

  using finder = std::function<found_keys()>;

  struct settings {
    std::function<std::int64_t()> now_seconds;   ///< since 1970
    key_patience patience{};
  };

  key_provider(finder find, settings s)
      : find_(std::move(find)), settings_(std::move(s)), notices_(settings_.patience.notice) {}

  found_keys get();
  /// Notes that the server answered a request that was signed with these keys.
  void accepted(const signing_keys& keys);
  /// Notes that the server refuses these keys. Returns whether others are there, or may be soon.
  remedy refused(const signing_keys& keys);
  /// Handles a failure to read the surroundings of keys inside a catch block, as that of a look-up for keys.
  [[noreturn]] void look_up_failed();

 private:
  /// The time since a server began to refuse, or a look-up to fail.
  struct trouble {
    std::int64_t since_seconds = 0, last_seconds = 0, next_look = 0;
    int looks = 0;
    std::exception_ptr failure{};   // of the last look-up; null: it found the same keys
  };

  /// Returns whether a trouble has nothing to do with one of now. Clocks may be set back.
  static bool is_old(const trouble& t, std::int64_t now) noexcept {
    return now > t.last_seconds + 2 * pause_seconds || now < t.last_seconds - pause_seconds;
  }

  /// Returns whether these are the keys of now. The same keys may have a later time at which they expire.
  bool has_same(signing_keys keys) const;

  void begin_trouble(std::int64_t now) {
    trouble_.emplace(trouble{.since_seconds = now, .last_seconds = now, .next_look = now});
  }

  found_keys take(found_keys found, std::int64_t now);
  void count_look(std::int64_t now) noexcept;
  void look(std::int64_t now);
  /// Inside a catch block.
  void note_failure(std::int64_t now);
  double allowed_seconds() const noexcept;

  bool is_over(std::int64_t now) const noexcept {
    return static_cast<double>(now - trouble_->since_seconds) >= allowed_seconds();
  }

  /// Returns the time to the next look-up or to the end. Reports the first pause, and one each minute.
  double pause(std::int64_t now);
  [[noreturn]] void give_up_or_wait(std::int64_t now);
  std::string count_text(std::int64_t now) const;
  std::string tried(std::int64_t now) const;

  const finder find_;
  const settings settings_;
  notice_outlet notices_;
  std::mutex mutex_;   // of what follows
  std::optional<found_keys> found_;
  std::int64_t next_try_ = 0;
  std::optional<trouble> trouble_;
  std::int64_t next_report_ = 0;   // requests that were sent before may end a trouble that continues
  bool accepted_ = false;   // the server accepted keys at least once
};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/store/impl/key_provider.inl>
#endif
