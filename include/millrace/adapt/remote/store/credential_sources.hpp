// Finds AWS keys in the standard sources: environment, profile files, web identity, container and instance.
//
//   mr::detail::credential_sources sources(env, {.profile = "train"});
//   if (auto provided = sources.from_environment()) use(provided->keys);
//   sources.find();       // searches all sources, in order
//
// Each source returns an empty optional if it is not configured. Errors: setup_error or io_error if a source is
// configured but invalid. Messages contain neither secrets nor responses of credential servers. Threads: one at a time.
// Source: the AWS SDKs and Tools Reference Guide, "Standardized credential providers".
#pragma once

#include <millrace/adapt/remote/store/profile_file.hpp>
#include <millrace/adapt/remote/store/security_token_service.hpp>
#include <millrace/adapt/remote/store/key_environment.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Finds keys.
class credential_sources {
 public:
  struct choice {
    std::string profile{}, region{};   ///< the profile in the options; the region for STS, the security token service
  };

  credential_sources(const key_environment& env, choice choices);
  /// Returns the keys of the first source that has keys, or nothing if no source has keys.
  std::optional<provided_keys> find();
  std::optional<provided_keys> from_environment() const;
  std::optional<provided_keys> from_profile();
  std::optional<provided_keys> from_web_identity() const;
  std::optional<provided_keys> from_container() const;
  std::optional<provided_keys> from_instance() const;
  /// Returns a value of the selected profile. The credentials file has precedence over the config file.
  std::string profile_value(const std::string& name);
  /// Returns the endpoint of S3 in the services section of the selected profile.
  std::string service_endpoint();
  /// Returns the path of a profile file without sections, or "" if each file has sections. Another program is probably
  /// rewriting a file without sections.
  std::string empty_file();

  /// Returns the name of the profile's key source if that source is not supported. Otherwise returns "".
  const std::string& unsupported_source() const noexcept { return unsupported_source_; }

  static constexpr const char* export_hint =
      "Run `eval \"$(aws configure export-credentials --format env)\"` before this program, or set "
      "s3_options::credentials";

 private:
  [[noreturn]] static void fail_status(const std::string& who, int status);
  static provided_keys checked(provided_keys keys);
  void load_profiles();
  std::string value_in(const std::string& profile, const std::string& name) const;
  std::string file_of_token(const std::string& path) const;
  std::string answer_of(const small_request& request, const std::string& who) const;
  /// Parses the response of a container's agent, or of the instance metadata service.
  static provided_keys from_json(const std::string& body, const std::string& who);

  security_token_service sts() const { return {env_, choices_.region}; }

  std::optional<provided_keys> from_profile(const std::string& profile, int depth);
  std::optional<provided_keys> static_keys(const std::string& profile, const std::string& origin) const;
  /// Returns keys from the credential_source of a profile.
  std::optional<provided_keys> from_credential_source(const std::string& credential_source,
                                                      const std::string& origin) const;
  /// Returns whether the authorization token may be sent to this URL. Other machines must not be able to intercept it.
  static bool may_receive_token(std::string_view url);

  const key_environment& env_;
  choice choices_;
  std::string profile_, credentials_path_, config_path_, unsupported_source_, empty_file_;
  bool is_named_ = false, loaded_ = false;
  profile_file credentials_, config_;
};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/store/impl/credential_sources.inl>
#endif
