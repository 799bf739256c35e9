// Reads what an object store answers instead of the object: its code, and what to do about it.
//
//   const auto said = mr::detail::read_store_answer(answer);
//   if (said.is_transient()) wait_and_try_again();
//   throw said.failure("s3://bucket/a.tar", "the environment", now_seconds);
//
// Errors: none; an answer that cannot be read has no code. Threads: values. No message holds more of an answer than its
// code and its sentence: beside them stores repeat what was signed, and tokens.
// Source: "Error responses" of the Amazon S3 API Reference.
#pragma once

#include <millrace/adapt/remote/store/small_http.hpp>
#include <millrace/base/error.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// An answer with an error.
struct store_answer {
  int status = 0;
  std::string code{}, sentence{};   ///< empty: the answer has none, as to HEAD
  std::string region{};             ///< where the bucket is, if the answer says so
  std::optional<std::int64_t> server_seconds{};
  std::string tried{};              ///< what was done about it, for the error

  /// Whether the same request may succeed later.
  bool is_transient() const noexcept {
    return status >= 500 || status == 408 || status == 429 || code == "SlowDown" || code == "InternalError" ||
           code == "RequestTimeout" || code == "ServiceUnavailable" || code == "OperationAborted";
  }
  /// Whether other keys may help. An answer to HEAD has no code.
  bool is_about_keys() const noexcept;
  bool is_missing_object() const noexcept { return status == 404 && (code.empty() || code == "NoSuchKey"); }

  /// Returns the error of a request for `name` that this answer ends; `origin` says where the keys are from.
  io_error failure(const std::string& name, const std::string& origin, std::int64_t now_seconds) const;

 private:
  std::string advice(const std::string& origin) const;
};

/// Reads an answer with an error.
store_answer read_store_answer(const small_answer& answer);

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/store/impl/store_answer.inl>
#endif
