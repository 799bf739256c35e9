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

#include <millrace/adapt/remote/store/credential_sources.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
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
  const char* what() const noexcept override { return "keys are being looked for"; }

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
  double retry_seconds = 180;                        ///< for keys that a server accepts
  std::function<void(const std::string&)> tell{};    ///< receives one line for each series of look-ups; none: nobody
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

  key_provider(finder find, settings s) : find_(std::move(find)), settings_(std::move(s)) {}

  found_keys get() {
    const std::lock_guard lock(mutex_);
    const std::int64_t now = settings_.now_seconds();
    const bool is_good = found_ && now < found_->keys.expires_seconds;
    if (is_good && !trouble_ && (now < found_->keys.expires_seconds - margin_seconds || now < next_try_))
      return *found_;
    if (trouble_ && is_old(*trouble_, now)) trouble_.reset();
    if (trouble_ && now < trouble_->next_look) {
      if (is_good) return *found_;   // the server may accept them again
      give_up_or_wait(now);
    }
    if (is_good && !trouble_) {
      next_try_ = now + pause_seconds;
      try {
        found_ = find_();
      } catch (const std::exception&) {
        // They are good for some minutes more.
      }
      return *found_;
    }
    if (!trouble_) {
      try {
        return take(find_(), now);
      } catch (const no_keys_error&) {
        if (!accepted_) throw;
        begin_trouble(now);
        note_failure(now);
      } catch (const std::exception&) {
        begin_trouble(now);
        note_failure(now);
      }
    } else {
      look(now);
    }
    if (found_ && now < found_->keys.expires_seconds) return *found_;
    give_up_or_wait(now);
  }

  /// Notes that the server answered a request that was signed with these keys.
  void accepted(const signing_keys& keys) {
    const std::lock_guard lock(mutex_);
    if (!has_same(keys)) return;
    accepted_ = true;
    trouble_.reset();
  }

  /// Notes that the server refuses these keys. Returns whether others are there, or may be soon.
  remedy refused(const signing_keys& keys) {
    const std::lock_guard lock(mutex_);
    if (found_ && !has_same(keys)) return {.what = remedy::kind::at_once};
    const std::int64_t now = settings_.now_seconds();
    if (trouble_ && is_old(*trouble_, now)) trouble_.reset();
    if (!trouble_) begin_trouble(now);
    trouble_->last_seconds = now;
    if (now >= trouble_->next_look) look(now);
    if (found_ && !has_same(keys)) return {.what = remedy::kind::at_once};
    if (is_over(now)) return {.tried = tried(now)};
    return {.what = remedy::kind::later, .pause_seconds = pause(now)};
  }

  /// Handles a failure to read the surroundings of keys inside a catch block, as that of a look-up for keys.
  [[noreturn]] void look_up_failed() {
    const std::lock_guard lock(mutex_);
    const std::int64_t now = settings_.now_seconds();
    if (trouble_ && is_old(*trouble_, now)) trouble_.reset();
    if (!trouble_) begin_trouble(now);
    if (now >= trouble_->next_look) note_failure(now);
    give_up_or_wait(now);
  }

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
  bool has_same(signing_keys keys) const {
    if (found_) keys.expires_seconds = found_->keys.expires_seconds;
    return found_ && found_->keys == keys;
  }

  void begin_trouble(std::int64_t now) {
    trouble_.emplace(trouble{.since_seconds = now, .last_seconds = now, .next_look = now});
  }

  found_keys take(found_keys found, std::int64_t now) {
    if (found.keys.expires_seconds <= now)
      throw io_error(found.origin + " gives keys that expired " + std::to_string(now - found.keys.expires_seconds) +
                         " s ago", "Renew the keys, and check this machine's clock", {.stage = "remote"});
    found_ = std::move(found);
    next_try_ = now + pause_seconds;
    return *found_;
  }

  void count_look(std::int64_t now) noexcept {
    trouble_->last_seconds = now;
    const std::int64_t doubled = std::int64_t{1} << std::min(trouble_->looks, 10);
    trouble_->next_look = now + std::min(std::int64_t{longest_pause_seconds}, doubled);
    ++trouble_->looks;
  }

  void look(std::int64_t now) {
    try {
      take(find_(), now);
      trouble_->failure = nullptr;
      count_look(now);
    } catch (const std::exception&) {
      note_failure(now);
    }
  }

  /// Inside a catch block.
  void note_failure(std::int64_t now) {
    trouble_->failure = std::current_exception();
    count_look(now);
  }

  double allowed_seconds() const noexcept {
    const double retry_seconds = settings_.patience.retry_seconds;
    if (accepted_) return retry_seconds;
    return found_ && found_->is_fixed ? 0 : std::min<double>(unproven_seconds, retry_seconds);
  }

  bool is_over(std::int64_t now) const noexcept {
    return static_cast<double>(now - trouble_->since_seconds) >= allowed_seconds();
  }

  /// Returns the time to the next look-up or to the end. Reports the first pause, and one each minute.
  double pause(std::int64_t now) {
    const double left = allowed_seconds() - static_cast<double>(now - trouble_->since_seconds);
    if (settings_.patience.tell && now >= next_report_) {
      next_report_ = now + pause_seconds;
      char seconds[40];
      std::snprintf(seconds, sizeof seconds, "%.0f s", left);
      std::string line = found_ ? "the server refuses the keys of " + found_->origin : "keys cannot be read";
      try {
        if (trouble_->failure) std::rethrow_exception(trouble_->failure);
      } catch (const error& e) {
        line += ": " + e.message();
      } catch (const std::exception&) {
        line += ", and the callable for others throws";
      }
      settings_.patience.tell(line + ". They are looked for again for up to " + seconds);
    }
    return std::max(1.0, std::min(left, static_cast<double>(trouble_->next_look - now)));
  }

  [[noreturn]] void give_up_or_wait(std::int64_t now) {
    if (!is_over(now)) throw keys_pending(pause(now));
    const std::string more = count_text(now);
    const auto again = [&](auto copy) {
      copy.add(more);
      throw copy;
    };
    try {
      std::rethrow_exception(trouble_->failure);
    } catch (const no_keys_error& e) {
      again(e);
    } catch (const setup_error& e) {
      again(e);
    } catch (const io_error& e) {
      again(e);
    }
    std::terminate();   // not reached: each branch above throws
  }

  std::string count_text(std::int64_t now) const {
    char text[100];
    std::snprintf(text, sizeof text, "; looked for %s keys %d %s in %lld s", accepted_ || found_ ? "other" : "the",
                  trouble_->looks, trouble_->looks == 1 ? "time" : "times",
                  static_cast<long long>(now - trouble_->since_seconds));
    return text;
  }

  std::string tried(std::int64_t now) const {
    std::string text = count_text(now);
    try {
      if (trouble_->failure) std::rethrow_exception(trouble_->failure);
    } catch (const error& e) {
      text += ", and the last look-up failed: " + e.message();
    } catch (const std::exception&) {
      text += ", and the last look-up failed";
    }
    return text;
  }

  const finder find_;
  const settings settings_;
  std::mutex mutex_;   // of what follows
  std::optional<found_keys> found_;
  std::int64_t next_try_ = 0;
  std::optional<trouble> trouble_;
  std::int64_t next_report_ = 0;   // requests that were sent before may end a trouble that continues
  bool accepted_ = false;   // the server accepted keys at least once
};

}}}  // namespace millrace::detail
