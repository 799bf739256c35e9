// Requests tokens for Google Cloud Storage with the key file of a logged-in user or of a service account.
//
//   const mr::detail::google_key_file file(env);          // GOOGLE_APPLICATION_CREDENTIALS, or gcloud's default
//   if (auto provided = file.token()) use(provided->keys.session_token);
//
// A token permits only reads. Errors: setup_error for a file of an unsupported type; io_error for a file that cannot
// be read, and if the server refuses a token. Messages never contain text of the file. Threads: any.
// Source: "How Application Default Credentials works" and RFC 7523.
#pragma once

#include <millrace/adapt/remote/store/security_token_service.hpp>

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Encodes bytes for URLs and tokens: base64url of RFC 4648, section 5, without padding.
std::string base64_url(std::string_view bytes);

/// The key file that GOOGLE_APPLICATION_CREDENTIALS names, or the file that `gcloud auth application-default login`
/// writes.
class google_key_file {
 public:
  explicit google_key_file(const key_environment& env) : env_(env) {}

  /// Returns keys whose session_token is the token; empty if the key file does not exist.
  std::optional<provided_keys> token() const;

 private:
  using members = std::map<std::string, std::string>;

  /// Returns the members of the outermost JSON object.
  static members members_of(const std::string& json, const std::string& who);
  static std::string value_of(const members& all, const std::string& name);
  provided_keys of_service_account(const members& file, const std::string& path) const;
  provided_keys requested(const std::string& url, const std::string& form, const std::string& path) const;

  const key_environment& env_;
};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/store/impl/google_key_file.inl>
#endif
