// Parses the error response of an object store. Decides whether a new request may succeed.
//
//   const auto response = mr::detail::read_store_answer(answer);
//   if (response.is_transient()) wait_and_try_again();
//   throw response.failure("s3://bucket/a.tar", "the environment", now_seconds);
//
// Errors: none. A response that cannot be parsed has no code. Error texts contain only the code and the message of the
// response, because the rest may repeat signed texts and tokens. Threads: not synchronized.
// Source: "Error responses" of the Amazon S3 API Reference.
#pragma once

#include <millrace/adapt/remote/store/small_http.hpp>
#include <millrace/base/error.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// An error response.
struct store_answer {
  int status = 0;
  std::string code{}, sentence{};   ///< code and message; empty if the response has none, as for HEAD requests
  std::string region{};             ///< the region of the bucket, if the response contains it
  std::optional<std::int64_t> server_seconds{};
  std::string attempted{};          ///< description of the attempts to recover, for the error

  /// Returns whether the same request may succeed later.
  bool is_transient() const noexcept {
    return status >= 500 || status == 408 || status == 429 || code == "SlowDown" || code == "InternalError" ||
           code == "RequestTimeout" || code == "ServiceUnavailable" || code == "OperationAborted";
  }
  /// Returns whether a request with other keys may succeed. If the response has no code, the status decides.
  bool concerns_keys() const noexcept;
  bool is_missing_object() const noexcept { return status == 404 && (code.empty() || code == "NoSuchKey"); }

  /// Returns the error for this response to a request for `name`. `origin` is the source of the keys.
  io_error failure(const std::string& name, const std::string& origin, std::int64_t now_seconds) const;

 private:
  std::string advice(const std::string& origin) const;
};

/// Parses an error response.
store_answer read_store_answer(const small_answer& answer);

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/store/impl/store_answer.inl>
#endif
