// Requests the access keys of a role (in this header: keys) from the AWS Security Token Service (STS).
//
//   const mr::detail::security_token_service sts(env, "eu-west-1");
//   auto keys_of_role = sts.assume({.role = arn, .session = "me", .origin = "the profile \"train\""}, keys);
//   auto other = sts.assume_by_token({.role = arn, .origin = "the web identity"}, token);
//
// Errors: io_error if AWS refuses or returns incomplete keys. The message contains the error code of the response, but
// no other text of the response. Threads: any thread.
// Source: "AssumeRole" and "AssumeRoleWithWebIdentity" of the AWS STS API Reference.
#pragma once

#include <millrace/adapt/remote/store/signature_v4.hpp>
#include <millrace/adapt/remote/store/key_environment.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Keys, and a description of their source.
struct provided_keys {
  signing_keys keys{};
  std::string origin{};
  bool is_fixed = false;   ///< true if the keys never change, because they are from environment variables
};

/// Parses the text `expiration`, and returns `keys` with this expiration time. If `expiration` is empty, the keys do
/// not expire. Throws io_error if a key is missing or the time is invalid.
provided_keys keys_of_response(provided_keys keys, const std::string& expiration);

/// The Security Token Service of a region.
class security_token_service {
 public:
  /// A role, and the name of the session that AWS creates for the role.
  struct role_request {
    std::string role{};
    std::string session{};       ///< name of the session in the logs of AWS; by default "millrace-" and the time
    std::string external_id{};   ///< required by some roles
    std::string origin{};
  };

  security_token_service(const key_environment& env, std::string region) : env_(env), region_(std::move(region)) {}

  /// Requests the keys of a role. Signs the request with `keys`.
  provided_keys assume(const role_request& role, const signing_keys& keys) const;
  /// Requests the keys of a role with the token of an identity provider.
  provided_keys assume_by_token(const role_request& role, std::string_view token) const;

 private:
  std::string form_of(const char* action, const role_request& role) const;
  std::string endpoint() const;
  provided_keys send(const role_request& role, const std::string& form, const signing_keys* keys) const;

  const key_environment& env_;
  std::string region_;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/store/impl/security_token_service.inl>
#endif
