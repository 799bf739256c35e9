// The interface of a kind of object store. Builds requests for objects, and handles refusals.
//
//   auto sent = access.address("GET", name, "");
//   auto answer = fetch({.url = sent.url, .headers = sent.headers});
//   if (answer.status == 200) access.accepted(sent);
//   else act_on(access.handle_refusal(name, sent, read_store_answer(answer)));   // build the request again, or fail
//
// Each attempt gets its own URL and headers. Errors: the errors of key_provider::get(). Threads: any thread.
#pragma once

#include <millrace/adapt/remote/store/key_provider.hpp>
#include <millrace/adapt/remote/store/signature_v4.hpp>
#include <millrace/adapt/remote/store/small_http.hpp>
#include <millrace/base/error.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

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
  // Old buckets may have capitals and underscores, and up to 255 characters.
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
// A response that cannot be parsed has no code. Error texts contain only the code and the message of the response,
// because the rest may contain secrets.
// Source: "Error responses" of the Amazon S3 API Reference.

/// An error response.
struct store_answer {
  int status = 0;
  std::string code{}, sentence{};   ///< code and message of the response; may be empty
  std::string region{};             ///< the region of the bucket, if the response contains it
  std::optional<std::int64_t> server_seconds{};
  std::string attempted{};   ///< description of the attempts to recover, for the error

  /// Returns whether the same request may succeed later.
  bool is_transient() const noexcept {
    return status >= 500 || status == 408 || status == 429 || code == "SlowDown" || code == "InternalError" ||
           code == "RequestTimeout" || code == "ServiceUnavailable" || code == "OperationAborted";
  }
  /// Returns whether a request with other keys may succeed.
  bool concerns_keys() const noexcept;
  bool is_missing_object() const noexcept { return status == 404 && (code.empty() || code == "NoSuchKey"); }

  /// Returns the error for this response to a request for `name`. `origin` is the source of the keys.
  io_error failure(const std::string& name, const std::string& origin, std::int64_t now_seconds) const;

 private:
  std::string advice(const std::string& origin) const;
};

/// Parses an error response.
store_answer read_store_answer(const small_answer& answer);

/// A request before it is sent.
struct addressed_request {
  std::string url{};
  header_list headers{};   ///< headers to send in addition to the request's own headers
  std::string region{};    ///< the region of the signature
  signing_keys keys{};     ///< the keys of the signature, or a bearer token in session_token
  std::string origin{};    ///< the source of the keys; empty if the request has no keys
};

/// The interface of a kind of store.
class object_access {
 public:
  object_access() = default;
  object_access(const object_access&) = delete;
  object_access& operator=(const object_access&) = delete;
  virtual ~object_access() = default;

  /// Returns URL and headers of a request. `query` must be encoded.
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
