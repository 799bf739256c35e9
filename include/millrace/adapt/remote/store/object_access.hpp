// object_access is the interface to one kind of object store, such as S3. It builds requests for objects, and handles
// requests that the store refuses.
//
//   auto sent = access.address("GET", name, "");
//   auto answer = fetch({.url = sent.url, .headers = sent.headers});
//   if (answer.status == 200) access.accepted(sent);
//   else act_on(access.handle_refusal(name, sent, read_store_answer(answer)));   // build the request again, or fail
//
// Call address() again before each attempt, because a signature contains the time, and the access keys may have
// changed. Errors: the errors of credential_provider::get(). Threads: any thread.
#pragma once

#include <millrace/adapt/remote/store/security_token_service.hpp>
#include <millrace/adapt/remote/store/signature_v4.hpp>
#include <millrace/adapt/remote/store/small_http.hpp>
#include <millrace/base/error.hpp>
#include <millrace/sync/notice_outlet.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Stores access keys (in this header: keys), renews them before they expire, and searches for new keys while a server
// refuses the current keys.
//
// During a run, other programs often replace the keys. These programs may write the new key file in steps, or a few
// seconds after the old keys expire. Therefore refusals and failed searches are treated as transient, and searches are
// repeated with increasing pauses. If the server has accepted keys before, the searches end `retry_seconds` after the
// first refusal or failed search. Otherwise the keys are probably wrong. In this case, the searches end after at most 7
// s, or at once if the keys are from environment variables, which do not change.
// Errors: get() throws credentials_pending while the searches continue. After the end of the searches, get() throws the
// error of the last search. If no source is configured and the server has not accepted keys before, get() throws
// no_credentials_error at once. Threads: any thread. One thread searches while the others wait.

/// The error if no source of keys is configured.
class no_credentials_error : public setup_error {
 public:
  using setup_error::setup_error;
};

/// Thrown if no keys are available now, but the next search may find keys.
class credentials_pending : public std::exception {
 public:
  explicit credentials_pending(double seconds) noexcept : pause_seconds(seconds) {}
  const char* what() const noexcept override { return "the search for keys continues"; }

  double pause_seconds;   ///< time until the next search
};

/// The action after a server has refused a request.
struct remedy {
  enum class kind : std::uint8_t { none, at_once, later };
  kind what = kind::none;     ///< whether and when to build and send the request again
  double pause_seconds = 0;   ///< for kind::later: the pause before the next request
  /// For kind::none: a text with the number and the duration of the searches for keys, which the caller appends to the
  /// error. The text is empty if Millrace did not search.
  std::string attempted{};
};

/// Options of searches for keys.
struct credential_search_options {
  double retry_seconds = 180;   ///< duration of the searches, in seconds, if the server has accepted keys before
  notice_function notice{};     ///< receives notices about the searches, at most one per minute
};

/// Provides the keys for requests.
class credential_provider {
 public:
  static constexpr std::int64_t margin_seconds = 300, pause_seconds = 60;
  static constexpr std::int64_t unproven_seconds = 7, longest_pause_seconds = 16;

  using finder = std::function<provided_keys()>;

  struct settings {
    std::function<std::int64_t()> now_seconds;   ///< seconds since 1970
    credential_search_options search_options{};
  };

  credential_provider(finder find, settings s)
      : find_(std::move(find)), settings_(std::move(s)), notices_(settings_.search_options.notice) {}

  provided_keys get();
  /// Records that the server accepted a request that was signed with these keys.
  void accepted(const signing_keys& keys);
  /// Records that the server refuses these keys. Returns whether to build and send the request again: at once if other
  /// keys are available, or later while the searches continue.
  remedy refused(const signing_keys& keys);
  /// Records a failed search. Call this function inside a catch block, after the environment or a file could not be
  /// read. Throws credentials_pending while the searches continue, and otherwise the error of the last search.
  [[noreturn]] void search_failed();

 private:
  /// A period of refusals or failed searches.
  struct outage {
    std::int64_t since_seconds = 0, last_seconds = 0, next_search = 0;
    int searches = 0;
    std::exception_ptr failure{};   // the error of the last search; null if that search returned keys
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

  /// Returns the seconds until the next search or the end of the searches, whichever is earlier, but at least 1. Sends
  /// at most one notice per minute.
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
  // Earliest time of the next notice. It is not a member of outage_, because a success resets outage_, but notices must
  // still be at least a minute apart.
  std::int64_t next_report_ = 0;
  bool accepted_ = false;   // whether the server has accepted keys before
};

enum class object_store_kind : std::uint8_t { s3, gs };

/// The parts of the name of an object, such as s3://BUCKET/KEY or gs://BUCKET/KEY. If the key is empty, the name is the
/// prefix of all objects of the bucket.
struct object_url {
  object_store_kind kind = object_store_kind::s3;
  std::string bucket{}, key{};

  /// Returns the name of an object in the same bucket.
  std::string name_of(std::string_view other_key) const {
    return (kind == object_store_kind::s3 ? "s3://" : "gs://") + bucket + '/' + std::string(other_key);
  }
};

inline bool is_object_url(std::string_view name) noexcept {
  return name.starts_with("s3://") || name.starts_with("gs://");
}

/// Returns the parts of a name. Requires that is_object_url() is true.
inline object_url parse_object_url(std::string_view name) {
  object_url url{.kind = name.starts_with("gs://") ? object_store_kind::gs : object_store_kind::s3};
  const std::string_view rest = name.substr(5);
  const std::size_t slash = rest.find('/');
  url.bucket = rest.substr(0, slash);
  if (slash != std::string_view::npos) url.key = rest.substr(slash + 1);
  // The names of old buckets may have capitals and underscores, and up to 255 characters.
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_';
  };
  bool good = url.bucket.size() >= 3 && url.bucket.size() <= 255 && url.bucket[0] != '.' && url.bucket[0] != '-' &&
              url.bucket.find("..") == std::string::npos;
  for (const char c : url.bucket) good = good && allowed(c);
  if (!good)
    throw setup_error("the bucket of " + printable(name) + " is wrong: got " + printable('"' + url.bucket + '"') +
                          ", expected 3 to 255 letters, digits, dots, dashes and underscores",
                      "Write " + std::string(name.substr(0, 5)) + "BUCKET/KEY", {.stage = "remote"});
  return url;
}

// Parses the error response of an object store. Decides whether a new request may succeed.
// If a response cannot be parsed, store_answer::code is empty. Error texts contain only the code and the message of the
// response, because the rest may contain secrets.
// Source: "Error responses" of the Amazon S3 API Reference.

/// An error response.
struct store_answer {
  int status = 0;
  std::string code{}, sentence{};   ///< code and message of the response; may be empty
  std::string region{};             ///< the region of the bucket, if the response contains it
  std::optional<std::int64_t> server_seconds{};
  std::string attempted{};   ///< number and duration of the searches for keys; failure() appends this text to the error

  /// Returns whether the same request may succeed later.
  bool is_transient() const noexcept {
    return status >= 500 || status == 408 || status == 429 || code == "SlowDown" || code == "InternalError" ||
           code == "RequestTimeout" || code == "ServiceUnavailable" || code == "OperationAborted";
  }
  /// Returns whether the request may succeed if it is signed with other keys.
  bool concerns_keys() const noexcept;
  bool is_missing_object() const noexcept { return status == 404 && (code.empty() || code == "NoSuchKey"); }

  /// Returns the error for this response to a request for `name`. `origin` names the source of the signing keys, such
  /// as the environment.
  io_error failure(const std::string& name, const std::string& origin, std::int64_t now_seconds) const;

 private:
  std::string advice(const std::string& origin) const;
};

/// Parses an error response.
store_answer read_store_answer(const small_answer& answer);

/// A request before it is sent.
struct addressed_request {
  std::string url{};
  header_list headers{};   ///< headers to send; the sender may add others, such as Range
  std::string region{};    ///< the region of the signature
  signing_keys keys{};     ///< the keys that signed the request; for a bearer token, only session_token is set
  std::string origin{};    ///< the source of the keys; empty if the request has no keys
};

/// The interface to one kind of object store.
class object_access {
 public:
  object_access() = default;
  object_access(const object_access&) = delete;
  object_access& operator=(const object_access&) = delete;
  virtual ~object_access() = default;

  /// Returns URL and headers of a request. `query` is sent unchanged: encode its names and values with uri_encoded().
  virtual addressed_request address(std::string_view method, const object_url& object, std::string_view query) = 0;
  /// Records that a request succeeded.
  virtual void accepted(const addressed_request& sent) = 0;
  /// Handles a refusal. Returns whether and when a new request may succeed.
  virtual remedy handle_refusal(const object_url& object, const addressed_request& sent,
                                const store_answer& answer) = 0;
  /// Returns the time that is used for signatures, in seconds since 1970.
  virtual std::int64_t now_seconds() const = 0;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/store/impl/object_access.inl>
#endif
