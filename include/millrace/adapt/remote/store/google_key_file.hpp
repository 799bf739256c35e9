// Requests tokens for Google Cloud Storage. Uses the key file of a user who has logged in, or of a service account.
//
//   const mr::detail::google_key_file file(env);          // GOOGLE_APPLICATION_CREDENTIALS, or gcloud's default
//   if (auto provided = file.token()) use(provided->keys.session_token);
//
// A token permits only reads. Errors: setup_error for a file of an unsupported type; io_error if the file cannot be
// read, or the server refuses a token. Messages never contain text of the file. Threads: any thread.
// Source: "How Application Default Credentials works" and RFC 7523.
#pragma once

#include <millrace/adapt/remote/store/security_token_service.hpp>

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Encodes bytes as base64url (RFC 4648, section 5) without padding.
std::string base64_url(std::string_view bytes);

/// The key file: the file in GOOGLE_APPLICATION_CREDENTIALS, or the file that `gcloud auth application-default login`
/// writes.
class google_key_file {
 public:
  explicit google_key_file(const key_environment& env) : env_(env) {}

  /// Returns keys whose session_token is the token, or nothing if the key file does not exist.
  std::optional<provided_keys> token() const;

 private:
  using members = std::map<std::string, std::string>;

  /// Returns the members of the outermost JSON object. `who` names the source of the text in errors.
  static members members_of(const std::string& json, const std::string& who);
  static std::string value_of(const members& all, const std::string& name);
  provided_keys of_service_account(const members& file, const std::string& path) const;
  provided_keys requested(const std::string& url, const std::string& form, const std::string& path) const;

  const key_environment& env_;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/store/impl/google_key_file.inl>
#endif
