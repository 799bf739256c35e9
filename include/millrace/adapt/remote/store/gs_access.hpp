// Builds requests to the XML API of Google Cloud Storage. A request contains a bearer token, or an AWS signature that
// was computed with an HMAC key. Anonymous requests and requests to an emulator contain neither.
//
//   mr::detail::gs_access access({.bearer_token = [] { return token_of_my_own(); }}, env);
//   access.address("GET", name, "").url;     // https://storage.googleapis.com/BUCKET/KEY
//
// Errors: setup_error if the endpoint is not a URL, or if keys are missing; io_error if a response of the metadata
// server is invalid. Messages contain no secrets. Threads: any thread.
// Source: "XML API overview" and "About VM metadata" of Google Cloud's documentation.
#pragma once

#include <millrace/adapt/remote/store/object_access.hpp>
#include <millrace/adapt/remote/store/s3_options.hpp>
#include <millrace/adapt/remote/store/security_token_service.hpp>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Requests tokens for Google Cloud Storage. Uses the key file of a user who has logged in, or of a service account.
//
// The token of a service account permits only reads. The token of a user has the scopes of the user's login. Errors:
// setup_error for a file of an unsupported type; io_error if the file cannot be read, or the server refuses a token.
// Messages never contain secrets of the file. Threads: any thread.
// Source: "How Application Default Credentials works" and RFC 7523.

/// Encodes bytes as base64url (RFC 4648, section 5) without padding.
std::string base64_url(std::string_view bytes);

/// The key file: the file that the variable GOOGLE_APPLICATION_CREDENTIALS names, or the file that `gcloud auth
/// application-default login` writes.
class google_key_file {
 public:
  explicit google_key_file(const key_environment& env) : env_(env) {}

  /// Requests a token. The result contains the token as keys.session_token, and no access key. Returns nothing if
  /// GOOGLE_APPLICATION_CREDENTIALS is not set and gcloud's file cannot be read.
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

/// Access to objects by Google's protocol.
class gs_access final : public object_access {
 public:
  gs_access(gs_options options, key_environment env, credential_search_options search_options = {})
      : options_(std::move(options)),
        env_(std::move(env)),
        keys_([this] { return find_keys(); },
              {.now_seconds = env_.now_seconds, .search_options = std::move(search_options)}) {}

  addressed_request address(std::string_view method, const object_url& object, std::string_view query) override;

  void accepted(const addressed_request& sent) override {
    if (!sent.origin.empty()) keys_.accepted(sent.keys);
  }

  remedy handle_refusal(const object_url&, const addressed_request& sent, const store_answer& answer) override;

  std::int64_t now_seconds() const override { return env_.now_seconds(); }

 private:
  /// Returns whether requests go to an emulator, which needs no keys.
  bool is_emulated() const;
  std::string endpoint() const;
  /// Returns keys that consist only of a token. Requests send the token in a header, and are not signed.
  static provided_keys of_token(std::string token, std::int64_t expires_seconds, const char* origin);
  static provided_keys as_fixed(provided_keys keys);
  provided_keys find_keys() const;
  std::optional<provided_keys> from_instance() const;

  const gs_options options_;
  const key_environment env_;
  credential_provider keys_;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/store/impl/gs_access.inl>
#endif
