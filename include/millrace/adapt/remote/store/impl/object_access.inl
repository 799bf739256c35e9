// Definitions for object_access.hpp.
#pragma once

#include <millrace/adapt/remote/store/object_access.hpp>

#include <millrace/adapt/remote/store/utc_time.hpp>
#include <millrace/adapt/remote/store/xml_reader.hpp>

#include <algorithm>
#include <cstdio>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE provided_keys credential_provider::get() {
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
    } catch (const no_credentials_error&) {
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

MILLRACE_INLINE void credential_provider::accepted(const signing_keys& keys) {
  const std::lock_guard lock(mutex_);
  if (!has_same(keys)) return;
  accepted_ = true;
  outage_.reset();
}

MILLRACE_INLINE remedy credential_provider::refused(const signing_keys& keys) {
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

MILLRACE_INLINE void credential_provider::search_failed() {
  const std::lock_guard lock(mutex_);
  const std::int64_t now = settings_.now_seconds();
  if (outage_ && is_old(*outage_, now)) outage_.reset();
  if (!outage_) begin_outage(now);
  if (now >= outage_->next_search) record_failure(now);
  fail_or_wait(now);
}

MILLRACE_INLINE bool credential_provider::has_same(signing_keys keys) const {
  if (current_) keys.expires_seconds = current_->keys.expires_seconds;
  return current_ && current_->keys == keys;
}

MILLRACE_INLINE provided_keys credential_provider::take(provided_keys provided, std::int64_t now) {
  if (provided.keys.expires_seconds <= now)
    throw io_error("the credentials from " + provided.origin + " expired " +
                       std::to_string(now - provided.keys.expires_seconds) + " s ago",
                   "Renew the credentials, and check this machine's clock", {.stage = "remote"});
  current_ = std::move(provided);
  next_try_ = now + pause_seconds;
  return *current_;
}

MILLRACE_INLINE void credential_provider::count_search(std::int64_t now) noexcept {
  outage_->last_seconds = now;
  const std::int64_t doubled = std::int64_t{1} << std::min(outage_->searches, 10);
  outage_->next_search = now + std::min(std::int64_t{longest_pause_seconds}, doubled);
  ++outage_->searches;
}

MILLRACE_INLINE void credential_provider::search(std::int64_t now) {
  try {
    take(find_(), now);
    outage_->failure = nullptr;
    count_search(now);
  } catch (const std::exception&) {
    record_failure(now);
  }
}

MILLRACE_INLINE void credential_provider::record_failure(std::int64_t now) {
  outage_->failure = std::current_exception();
  count_search(now);
}

MILLRACE_INLINE double credential_provider::allowed_seconds() const noexcept {
  const double retry_seconds = settings_.search_options.retry_seconds;
  if (accepted_) return retry_seconds;
  return current_ && current_->is_fixed ? 0 : std::min<double>(unproven_seconds, retry_seconds);
}

MILLRACE_INLINE double credential_provider::pause(std::int64_t now) {
  const double left = allowed_seconds() - static_cast<double>(now - outage_->since_seconds);
  if (now >= next_report_) {
    next_report_ = now + pause_seconds;
    char seconds[40];
    std::snprintf(seconds, sizeof seconds, "%.0f s", left);
    std::string line = current_ ? "the server refuses the credentials from " + current_->origin
                                : "credentials cannot be read";
    try {
      if (outage_->failure) std::rethrow_exception(outage_->failure);
    } catch (const error& e) {
      line += ": " + e.message();
    } catch (const std::exception&) {
      line += ", and the callable that returns new credentials throws";
    }
    notices_.deliver({.kind = notice_kind::keys,
                      .severity = notice_severity::warning,
                      .text = line + ". Millrace searches for new credentials for up to " + seconds});
  }
  return std::max(1.0, std::min(left, static_cast<double>(outage_->next_search - now)));
}

MILLRACE_INLINE void credential_provider::fail_or_wait(std::int64_t now) {
  if (!is_over(now)) throw credentials_pending(pause(now));
  const std::string more = count_text(now);
  const auto again = [&](auto copy) {
    copy.add(more);
    throw copy;
  };
  try {
    std::rethrow_exception(outage_->failure);
  } catch (const no_credentials_error& e) {
    again(e);
  } catch (const setup_error& e) {
    again(e);
  } catch (const io_error& e) {
    again(e);
  }
  std::terminate();   // not reached: each branch above throws
}

MILLRACE_INLINE std::string credential_provider::count_text(std::int64_t now) const {
  char text[100];
  std::snprintf(text, sizeof text, "; searched for %s keys %d %s in %lld s", accepted_ || current_ ? "other" : "the",
                outage_->searches, outage_->searches == 1 ? "time" : "times",
                static_cast<long long>(now - outage_->since_seconds));
  return text;
}

MILLRACE_INLINE std::string credential_provider::search_summary(std::int64_t now) const {
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

MILLRACE_INLINE bool store_answer::concerns_keys() const noexcept {
  for (const char* const of_keys :
       {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "InvalidToken", "InvalidSecurity",
        // While a key file is being replaced, it may contain the new key id with the old secret, or a part of the
        // secret.
        "InvalidAccessKeyId", "InvalidClientTokenId", "SignatureDoesNotMatch"})
    if (code == of_keys) return true;
  return status == 401 || (code.empty() && (status == 400 || status == 403));
}

MILLRACE_INLINE io_error store_answer::failure(const std::string& name, const std::string& origin,
                                               std::int64_t now_seconds) const {
  std::string text = "the store refuses a request: got status " + std::to_string(status);
  if (!code.empty()) text += " " + printable(code, 64);
  if (!sentence.empty()) text += " (" + printable(sentence, 300) + ")";
  text += ", expected 200";
  if (code == "RequestTimeTooSkewed" && server_seconds) {
    const std::int64_t ahead = now_seconds - *server_seconds;
    text += "; this machine's clock is " + std::to_string(ahead < 0 ? -ahead : ahead) + " seconds " +
            (ahead < 0 ? "behind" : "ahead of") + " the server's";
  }
  return io_error(text + attempted, advice(origin), {.stage = "remote", .shard = name});
}

MILLRACE_INLINE std::string store_answer::advice(const std::string& origin) const {
  const std::string keys = origin.empty() ? "without keys" : "with keys of " + origin;
  if (code == "RequestTimeTooSkewed") return "Set this machine's clock";
  if (code == "NoSuchBucket") return "Correct the bucket, or the endpoint";
  if (code == "SignatureDoesNotMatch") return "Correct the secret access key. The request was signed " + keys;
  if (code == "InvalidAccessKeyId") return "Correct the access key id. The request was signed " + keys;
  if (code == "ExpiredToken" || code == "InvalidToken" || status == 401)
    return "Renew the keys. The request was signed " + keys;
  if (status == 301 || status == 307 || code == "AuthorizationHeaderMalformed")
    return "Name the bucket's region: AWS_REGION, or s3_options::region";
  if (status == 403 || status == 400)
    return "Check the permissions to read and to list the bucket. The request was sent " + keys +
           ". Without the permission to list, a store also refuses names that do not exist";
  if (is_transient()) return "Try again later, or with fewer concurrent requests";
  return "See the documentation of the store for this code";
}

MILLRACE_INLINE store_answer read_store_answer(const small_answer& answer) {
  store_answer result{.status = answer.status,
                      .region = std::string(header_value(answer.headers, "x-amz-bucket-region")),
                      .server_seconds = http_date_seconds(header_value(answer.headers, "date"))};
  std::optional<std::int64_t> server_time;
  try {
    xml_reader(answer.body).for_each([&](std::string_view at, const std::string& content) {
      if (at == "Error/Code") result.code = content;
      else if (at == "Error/Message") result.sentence = content;
      else if (at == "Error/Region" && result.region.empty()) result.region = content;
      else if (at == "Error/ServerTime") server_time = utc_seconds(content);
    });
  } catch (const data_error&) {
    // Proxies may send HTML.
  }
  if (server_time) result.server_seconds = server_time;
  return result;
}

}}}   // namespace millrace::detail
