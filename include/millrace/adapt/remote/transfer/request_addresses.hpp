// Builds requests for all kinds of names: http://, https://, s3:// and gs://.
//
//   mr::detail::request_addresses addresses(options);
//   auto sent = addresses.address("https://data.example/train-000.tar");   // call it before each attempt
//   const auto next = addresses.handle_refusal(name, sent, answer);   // whether and when to retry
//
// Errors: setup_error for a name of another kind, and the errors of a search for access keys. Threads: any thread.
#pragma once

#include <millrace/adapt/remote/store/object_stores.hpp>
#include <millrace/adapt/remote/transfer/remote_options.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

inline bool is_web_name(std::string_view name) noexcept {
  return name.starts_with("http://") || name.starts_with("https://");
}

/// Returns a name without its user and password, and with "..." in place of its query.
std::string without_secrets(std::string_view name);

/// Builds requests from the names of objects.
class request_addresses {
 public:
  explicit request_addresses(const remote_options& o);
  /// Returns URL and headers of a request.
  addressed_request address(const std::string& name);
  /// Returns URL and headers of a request to the target of a redirect.
  addressed_request redirected(const std::string& name, const std::string& target);
  /// Records that a request succeeded.
  void accepted(const std::string& name, const addressed_request& sent);
  /// Handles a refusal. Returns whether and when a new request may succeed.
  remedy handle_refusal(const std::string& name, const addressed_request& sent, const small_answer& answer);
  /// Returns the error for a refused request. `attempted` is remedy::attempted from the result of handle_refusal(). The
  /// message ends with this text.
  io_error failure(const std::string& name, const addressed_request& sent, const small_answer& answer,
                   const std::string& attempted = {}) const;
  /// Returns the message in a refusal as " (message)", or "" if the refusal has no message.
  static std::string refusal_message(const small_answer& answer);
  /// Returns the names that begin with `prefix`, sorted.
  std::vector<std::string> list(const std::string& prefix);

 private:
  static credential_search_options search_options_of(const remote_options& o);
  static provided_keys keys_of_web(header_list headers);

  const header_list headers_;
  const bool has_current_headers_;
  object_stores stores_;
  credential_provider web_keys_;   // provides remote_options::current_headers, which may expire like access keys
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/transfer/impl/request_addresses.inl>
#endif
