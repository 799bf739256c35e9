// Definitions for key_provider.hpp.
#pragma once

#include <millrace/adapt/remote/store/key_provider.hpp>

#include <algorithm>
#include <cstdio>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE provided_keys key_provider::get() {
  const std::lock_guard lock(mutex_);
  const std::int64_t now = settings_.now_seconds();
  const bool is_good = current_ && now < current_->keys.expires_seconds;
  if (is_good && !outage_ && (now < current_->keys.expires_seconds - margin_seconds || now < next_try_))
    return *current_;
  if (outage_ && is_old(*outage_, now)) outage_.reset();
  if (outage_ && now < outage_->next_search) {
    if (is_good) return *current_;   // the server may accept them again
    fail_or_wait(now);
  }
  if (is_good && !outage_) {
    next_try_ = now + pause_seconds;
    try {
      current_ = find_();
    } catch (const std::exception&) {
      // The current keys are still valid for some minutes.
    }
    return *current_;
  }
  if (!outage_) {
    try {
      return take(find_(), now);
    } catch (const no_keys_error&) {
      if (!accepted_) throw;
      begin_outage(now);
      record_failure(now);
    } catch (const std::exception&) {
      begin_outage(now);
      record_failure(now);
    }
  } else {
    search(now);
  }
  if (current_ && now < current_->keys.expires_seconds) return *current_;
  fail_or_wait(now);
}

MILLRACE_INLINE void key_provider::accepted(const signing_keys& keys) {
  const std::lock_guard lock(mutex_);
  if (!has_same(keys)) return;
  accepted_ = true;
  outage_.reset();
}

MILLRACE_INLINE remedy key_provider::refused(const signing_keys& keys) {
  const std::lock_guard lock(mutex_);
  if (current_ && !has_same(keys)) return {.what = remedy::kind::at_once};
  const std::int64_t now = settings_.now_seconds();
  if (outage_ && is_old(*outage_, now)) outage_.reset();
  if (!outage_) begin_outage(now);
  outage_->last_seconds = now;
  if (now >= outage_->next_search) search(now);
  if (current_ && !has_same(keys)) return {.what = remedy::kind::at_once};
  if (is_over(now)) return {.attempted = search_summary(now)};
  return {.what = remedy::kind::later, .pause_seconds = pause(now)};
}

MILLRACE_INLINE void key_provider::search_failed() {
  const std::lock_guard lock(mutex_);
  const std::int64_t now = settings_.now_seconds();
  if (outage_ && is_old(*outage_, now)) outage_.reset();
  if (!outage_) begin_outage(now);
  if (now >= outage_->next_search) record_failure(now);
  fail_or_wait(now);
}

MILLRACE_INLINE bool key_provider::has_same(signing_keys keys) const {
  if (current_) keys.expires_seconds = current_->keys.expires_seconds;
  return current_ && current_->keys == keys;
}

MILLRACE_INLINE provided_keys key_provider::take(provided_keys provided, std::int64_t now) {
  if (provided.keys.expires_seconds <= now)
    throw io_error(
        provided.origin + " has keys that expired " + std::to_string(now - provided.keys.expires_seconds) + " s ago",
        "Renew the keys, and check this machine's clock", {.stage = "remote"});
  current_ = std::move(provided);
  next_try_ = now + pause_seconds;
  return *current_;
}

MILLRACE_INLINE void key_provider::count_search(std::int64_t now) noexcept {
  outage_->last_seconds = now;
  const std::int64_t doubled = std::int64_t{1} << std::min(outage_->searches, 10);
  outage_->next_search = now + std::min(std::int64_t{longest_pause_seconds}, doubled);
  ++outage_->searches;
}

MILLRACE_INLINE void key_provider::search(std::int64_t now) {
  try {
    take(find_(), now);
    outage_->failure = nullptr;
    count_search(now);
  } catch (const std::exception&) {
    record_failure(now);
  }
}

MILLRACE_INLINE void key_provider::record_failure(std::int64_t now) {
  outage_->failure = std::current_exception();
  count_search(now);
}

MILLRACE_INLINE double key_provider::allowed_seconds() const noexcept {
  const double retry_seconds = settings_.search_options.retry_seconds;
  if (accepted_) return retry_seconds;
  return current_ && current_->is_fixed ? 0 : std::min<double>(unproven_seconds, retry_seconds);
}

MILLRACE_INLINE double key_provider::pause(std::int64_t now) {
  const double left = allowed_seconds() - static_cast<double>(now - outage_->since_seconds);
  if (now >= next_report_) {
    next_report_ = now + pause_seconds;
    char seconds[40];
    std::snprintf(seconds, sizeof seconds, "%.0f s", left);
    std::string line = current_ ? "the server refuses the keys of " + current_->origin : "keys cannot be read";
    try {
      if (outage_->failure) std::rethrow_exception(outage_->failure);
    } catch (const error& e) {
      line += ": " + e.message();
    } catch (const std::exception&) {
      line += ", and the callable that returns new keys throws";
    }
    notices_.deliver({.kind = notice_kind::keys,
                      .severity = notice_severity::warning,
                      .text = line + ". Millrace searches for new keys for up to " + seconds});
  }
  return std::max(1.0, std::min(left, static_cast<double>(outage_->next_search - now)));
}

MILLRACE_INLINE void key_provider::fail_or_wait(std::int64_t now) {
  if (!is_over(now)) throw keys_pending(pause(now));
  const std::string more = count_text(now);
  const auto again = [&](auto copy) {
    copy.add(more);
    throw copy;
  };
  try {
    std::rethrow_exception(outage_->failure);
  } catch (const no_keys_error& e) {
    again(e);
  } catch (const setup_error& e) {
    again(e);
  } catch (const io_error& e) {
    again(e);
  }
  std::terminate();   // not reached: each branch above throws
}

MILLRACE_INLINE std::string key_provider::count_text(std::int64_t now) const {
  char text[100];
  std::snprintf(text, sizeof text, "; searched for %s keys %d %s in %lld s", accepted_ || current_ ? "other" : "the",
                outage_->searches, outage_->searches == 1 ? "time" : "times",
                static_cast<long long>(now - outage_->since_seconds));
  return text;
}

MILLRACE_INLINE std::string key_provider::search_summary(std::int64_t now) const {
  std::string text = count_text(now);
  try {
    if (outage_->failure) std::rethrow_exception(outage_->failure);
  } catch (const error& e) {
    text += ", and the last search failed: " + e.message();
  } catch (const std::exception&) {
    text += ", and the last search failed";
  }
  return text;
}

}}}   // namespace millrace::detail
