// Finds access keys of AWS (in this header: keys) in the standard sources: environment, profile files, web identity,
// container and instance.
//
//   mr::detail::credential_sources sources(env, {.profile = "train"});
//   if (auto provided = sources.from_environment()) use(provided->keys);
//   sources.find();       // searches all sources, in order
//
// If a source is not configured, its function returns an empty optional. Errors: setup_error for invalid settings;
// io_error if a token file cannot be read, or if a credential server returns no keys. Messages contain neither secrets
// nor responses of credential servers. Threads: one at a time.
// Source: the AWS SDKs and Tools Reference Guide, "Standardized credential providers".
#pragma once

#include <millrace/adapt/remote/store/security_token_service.hpp>
#include <millrace/adapt/remote/store/key_environment.hpp>
#include <millrace/base/error.hpp>

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Reads AWS profile files: ~/.aws/credentials and ~/.aws/config.
// Errors: profile_error with path and line number for a line that is neither a section nor NAME = VALUE. The error does
// not contain the line, which may contain a secret.
// Source: the AWS SDKs and Tools Reference Guide, "Shared config files".

/// The error for a profile file that cannot be parsed. A possible cause is that another program is writing the file at
/// this moment. Therefore the search for keys is repeated after this error.
class profile_error : public setup_error {
 public:
  using setup_error::setup_error;
};

/// The sections of a profile file and their values.
class profile_file {
 public:
  static profile_file parse(std::string_view text, std::string_view path);

  bool has(const std::string& section) const { return sections_.count(section) != 0; }

  std::string value(const std::string& section, const std::string& name) const;

 private:
  [[noreturn]] static void fail(std::string_view path, std::size_t line);
  /// Returns the name of the section in a header: `profile a b` for [profile "a b"].
  static std::string section_name(std::string_view text);
  static std::string_view without_comment(std::string_view value) noexcept;

  std::map<std::string, std::map<std::string, std::string>> sections_;
};

/// Finds keys.
class credential_sources {
 public:
  struct choice {
    /// `profile` is the member of s3_options with this name. `region` is the AWS region whose security token service
    /// (STS) returns the keys of roles.
    std::string profile{}, region{};
  };

  credential_sources(const key_environment& env, choice choices);
  /// Returns the keys of the first source that has keys, or nothing if no source has keys. Skips the environment if
  /// choice::profile is set.
  std::optional<provided_keys> find();
  std::optional<provided_keys> from_environment() const;
  std::optional<provided_keys> from_profile();
  std::optional<provided_keys> from_web_identity() const;
  std::optional<provided_keys> from_container() const;
  std::optional<provided_keys> from_instance() const;
  /// Returns a value of the selected profile. The credentials file has precedence over the config file.
  std::string profile_value(const std::string& name);
  /// Returns the endpoint of S3 from the services section that the selected profile names. If no endpoint is set there,
  /// returns "".
  std::string service_endpoint();
  /// Returns the path of an empty profile file, or "" if no profile file is empty. A file may be empty while a program
  /// rewrites it.
  std::string empty_file();

  /// If the profile gets its keys from a source that Millrace does not support, returns the name of this source, such
  /// as sso_session. Otherwise returns "".
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
  /// Returns the keys of the source that the setting `credential_source` of a profile names, such as Environment.
  std::optional<provided_keys> from_credential_source(const std::string& credential_source,
                                                      const std::string& origin) const;
  /// Returns whether it is safe to send the authorization token to this URL.
  static bool may_receive_token(std::string_view url);

  const key_environment& env_;
  choice choices_;
  std::string profile_, credentials_path_, config_path_, unsupported_source_, empty_file_;
  bool is_named_ = false, loaded_ = false;
  profile_file credentials_, config_;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/store/impl/credential_sources.inl>
#endif
