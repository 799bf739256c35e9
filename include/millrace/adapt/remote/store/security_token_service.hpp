// Asks Amazon's Security Token Service for the keys of a role.
//
//   const mr::detail::security_token_service sts(around, "eu-west-1");
//   auto found = sts.assume({.role = arn, .session = "me", .origin = "the profile \"train\""}, keys);
//   auto other = sts.assume_by_token({.role = arn, .origin = "the web identity"}, token);
//
// Errors: io_error for a refusal, with its code; no message holds more of an answer. Threads: any.
// Source: "AssumeRole" and "AssumeRoleWithWebIdentity" of the AWS STS API Reference.
#pragma once

#include <millrace/adapt/remote/store/signature_v4.hpp>
#include <millrace/adapt/remote/store/surroundings.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Keys, and the words for where they are from.
struct found_keys {
  signing_keys keys{};
  std::string origin{};
  bool is_fixed = false;   ///< looking again finds the same: the environment of a process does not change
};

/// Returns keys from an answer with the time at which they expire, if it has one.
found_keys keys_of_answer(found_keys found, const std::string& expiration);

/// The service, in a region.
class security_token_service {
 public:
  /// A role, and for whom it is asked.
  struct role_request {
    std::string role{};
    std::string session{};       ///< stands in logs; empty: one with the time
    std::string external_id{};   ///< a word that some roles ask for
    std::string origin{};
  };

  security_token_service(const surroundings& around, std::string region)
      : around_(around), region_(std::move(region)) {}

  /// Returns the role's keys for those who hold `keys`.
  found_keys assume(const role_request& wanted, const signing_keys& keys) const;
  /// Returns the role's keys for those who hold a token of an identity provider.
  found_keys assume_by_token(const role_request& wanted, std::string_view token) const;

 private:
  std::string form_of(const char* action, const role_request& wanted) const;
  std::string endpoint() const;
  found_keys ask(const role_request& wanted, const std::string& form, const signing_keys* keys) const;

  const surroundings& around_;
  std::string region_;
};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/store/impl/security_token_service.inl>
#endif
