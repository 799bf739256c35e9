// Definitions for credential_sources.hpp.
#pragma once

#include <millrace/adapt/remote/store/credential_sources.hpp>

#include <millrace/adapt/remote/store/small_http.hpp>
#include <millrace/adapt/remote/store/uri_encoding.hpp>
#include <millrace/base/json_objects.hpp>

#include <algorithm>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE credential_sources::credential_sources(const key_environment& env, choice choices)
    : env_(env), choices_(std::move(choices)) {
  profile_ = !choices_.profile.empty() ? choices_.profile : env_.variable("AWS_PROFILE");
  is_named_ = !profile_.empty();
  if (!is_named_) profile_ = "default";
}

MILLRACE_INLINE std::optional<provided_keys> credential_sources::find() {
  if (choices_.profile.empty())
    if (auto keys = from_environment()) return keys;
  if (auto keys = from_profile()) return keys;
  if (auto keys = from_web_identity()) return keys;
  if (auto keys = from_container()) return keys;
  return from_instance();
}

MILLRACE_INLINE std::optional<provided_keys> credential_sources::from_environment() const {
  signing_keys keys{.access_key_id = env_.variable("AWS_ACCESS_KEY_ID"),
                    .secret_access_key = env_.variable("AWS_SECRET_ACCESS_KEY"),
                    .session_token = env_.variable("AWS_SESSION_TOKEN")};
  if (keys.access_key_id.empty() && keys.secret_access_key.empty()) return std::nullopt;
  return checked({.keys = std::move(keys), .origin = "the environment", .is_fixed = true});
}

MILLRACE_INLINE std::optional<provided_keys> credential_sources::from_profile() {
  load_profiles();
  const std::string in_config = profile_ == "default" ? profile_ : "profile " + profile_;
  if (is_named_ && !credentials_.has(profile_) && !config_.has(in_config) && !config_.has("profile " + profile_))
    throw setup_error("the profile " + printable('"' + profile_ + '"') + " is unknown: expected it in " +
                          printable(credentials_path_) + " or " + printable(config_path_),
                      "Correct AWS_PROFILE or s3_options::profile", {.stage = "remote"});
  return from_profile(profile_, 0);
}

MILLRACE_INLINE std::optional<provided_keys> credential_sources::from_web_identity() const {
  const std::string file = env_.variable("AWS_WEB_IDENTITY_TOKEN_FILE"), role = env_.variable("AWS_ROLE_ARN");
  if (file.empty() || role.empty()) return std::nullopt;
  return sts().assume_by_token(
      {.role = role, .session = env_.variable("AWS_ROLE_SESSION_NAME"), .origin = "the web identity"},
      trimmed_http(file_of_token(file)));
}

MILLRACE_INLINE std::optional<provided_keys> credential_sources::from_container() const {
  const std::string relative = env_.variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  const std::string full = env_.variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (relative.empty() && full.empty()) return std::nullopt;
  const std::string url = relative.empty() ? full : "http://169.254.170.2" + relative;
  if (relative.empty() && !may_receive_token(url))
    throw setup_error("AWS_CONTAINER_CREDENTIALS_FULL_URI is wrong: got " + printable(url) +
                          ", expected an https address, this machine, or the link-local address of ECS or EKS",
                      "Use an https address, because others could read access keys that are sent over http",
                      {.stage = "remote"});
  small_request request{.url = url, .seconds = 5};
  std::string token = env_.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  if (const std::string file = env_.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); !file.empty())
    token = trimmed_http(file_of_token(file));
  if (token.find_first_of("\r\n") != std::string::npos)
    throw setup_error("the container's authorization token is wrong: it has several lines", "Write it as one line",
                      {.stage = "remote"});
  if (!token.empty()) request.headers.emplace_back("Authorization", token);
  return from_json(answer_of(request, "the container's agent"), "the container's agent");
}

MILLRACE_INLINE std::optional<provided_keys> credential_sources::from_instance() const {
  if (env_.is_on("AWS_EC2_METADATA_DISABLED")) return std::nullopt;
  std::string base = env_.variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  if (base.empty()) base = "http://169.254.169.254";
  while (base.ends_with('/')) base.pop_back();
  const std::string roles = base + "/latest/meta-data/iam/security-credentials/";
  small_request request{.method = "PUT",
                        .url = base + "/latest/api/token",
                        .headers = {{"X-aws-ec2-metadata-token-ttl-seconds", "21600"}},
                        .seconds = 1,
                        .attempts = 1};
  small_answer answer;
  try {
    answer = env_.fetch(request);
  } catch (const io_error&) {
    return std::nullopt;   // this machine is not an instance
  }
  if (answer.status != 200) return std::nullopt;
  const std::string token(trimmed_http(answer.body));
  if (token.empty() || token.find_first_of("\r\n") != std::string::npos) return std::nullopt;
  small_request next{.url = roles, .headers = {{"X-aws-ec2-metadata-token", token}}, .seconds = 5};
  answer = env_.fetch(next);
  if (answer.status == 404) return std::nullopt;   // the instance has no role
  if (answer.status != 200) fail_status("the instance's metadata", answer.status);
  next.url += uri_encoded(trimmed_http(answer.body.substr(0, answer.body.find('\n'))), slash::encoded);
  return from_json(answer_of(next, "the instance's metadata"), "the instance's metadata");
}

MILLRACE_INLINE std::string credential_sources::profile_value(const std::string& name) {
  load_profiles();
  return value_in(profile_, name);
}

MILLRACE_INLINE std::string credential_sources::service_endpoint() {
  load_profiles();
  const std::string services = value_in(profile_, "services");
  return services.empty() ? std::string() : config_.value("services " + services, "s3.endpoint_url");
}

MILLRACE_INLINE std::string credential_sources::empty_file() {
  load_profiles();
  return empty_file_;
}

MILLRACE_INLINE void credential_sources::fail_status(const std::string& who, int status) {
  throw io_error(who + " returned no access keys: got status " + std::to_string(status) + ", expected 200",
                 "Check the permissions of the role (IAM) that is attached to this machine", {.stage = "remote"});
}

MILLRACE_INLINE provided_keys credential_sources::checked(provided_keys provided) {
  if (provided.keys.access_key_id.empty() || provided.keys.secret_access_key.empty())
    throw setup_error("an access key is incomplete: " + provided.origin + " has a " +
                          (provided.keys.access_key_id.empty() ? "secret access key without its id"
                                                               : "key id without its secret access key"),
                      "Set the key id and the secret access key, or neither", {.stage = "remote"});
  return provided;
}

MILLRACE_INLINE void credential_sources::load_profiles() {
  if (loaded_) return;
  loaded_ = true;
  const auto load = [&](const char* variable, const char* usual, std::string& path) {
    path = env_.variable(variable);
    if (path.empty()) path = env_.variable("HOME") + usual;
    const auto text = env_.read_file(path);
    if (text && trimmed_http(*text).empty()) empty_file_ = path;
    return profile_file::parse(text ? *text : std::string(), path);
  };
  credentials_ = load("AWS_SHARED_CREDENTIALS_FILE", "/.aws/credentials", credentials_path_);
  config_ = load("AWS_CONFIG_FILE", "/.aws/config", config_path_);
}

MILLRACE_INLINE std::string credential_sources::value_in(const std::string& profile, const std::string& name) const {
  if (const std::string value = credentials_.value(profile, name); !value.empty()) return value;
  if (const std::string value = config_.value("profile " + profile, name); !value.empty()) return value;
  return profile == "default" ? config_.value(profile, name) : std::string();
}

MILLRACE_INLINE std::string credential_sources::file_of_token(const std::string& path) const {
  auto text = env_.read_file(path);
  if (!text || trimmed_http(*text).empty())
    throw io_error("the token file " + printable(path) + " cannot be read, or it is empty",
                   "Check that the file exists and that this process may read it", {.stage = "remote"});
  return *text;
}

MILLRACE_INLINE std::string credential_sources::answer_of(const small_request& request, const std::string& who) const {
  small_answer answer = env_.fetch(request);
  if (answer.status != 200) fail_status(who, answer.status);
  return std::move(answer.body);
}

MILLRACE_INLINE provided_keys credential_sources::from_json(const std::string& body, const std::string& who) {
  provided_keys result{.keys = {}, .origin = who};
  std::string expiration;
  try {
    json_objects(body, who).for_each([&](const auto& members) {
      for (const auto& m : members) {
        if (m.key == "AccessKeyId") result.keys.access_key_id = m.text;
        else if (m.key == "SecretAccessKey") result.keys.secret_access_key = m.text;
        else if (m.key == "Token") result.keys.session_token = m.text;
        else if (m.key == "Expiration") expiration = m.text;
      }
    });
  } catch (const data_error&) {
    throw io_error(who + " returned no access keys: its answer is not valid JSON",
                   "Check the role (IAM) that is attached to this machine", {.stage = "remote"});
  }
  return keys_of_response(std::move(result), expiration);
}

MILLRACE_INLINE std::optional<provided_keys> credential_sources::from_profile(const std::string& profile, int depth) {
  constexpr int max_depth = 5;
  const std::string origin = "the profile " + printable('"' + profile + '"');
  const auto value = [&](const char* name) { return value_in(profile, name); };
  const std::string role = value("role_arn"), source = value("source_profile"),
                    credential_source = value("credential_source");
  if (depth > max_depth)
    throw setup_error("the profiles form a cycle or a long chain: " + origin +
                          " is reached after 6 source_profile settings, expected at most 5",
                      "Correct source_profile in " + printable(config_path_), {.stage = "remote"});
  if (!role.empty() && (!source.empty() || !credential_source.empty())) {
    if (!value("mfa_serial").empty())
      throw setup_error(origin + " requires an MFA code (mfa_serial), which Millrace does not support", export_hint,
                        {.stage = "remote"});
    const auto keys = !credential_source.empty() ? from_credential_source(credential_source, origin)
                      : source == profile        ? static_keys(profile, origin)
                                                 : from_profile(source, depth + 1);
    if (!keys)
      throw setup_error(origin + " needs access keys to assume its role: got none, expected them from " +
                            printable(credential_source.empty() ? "the profile \"" + source + '"' : credential_source),
                        "Correct source_profile or credential_source", {.stage = "remote"});
    return sts().assume(
        {.role = role, .session = value("role_session_name"), .external_id = value("external_id"), .origin = origin},
        keys->keys);
  }
  if (auto keys = static_keys(profile, origin)) return keys;
  if (const std::string file = value("web_identity_token_file"); !file.empty() && !role.empty())
    return sts().assume_by_token({.role = role, .session = value("role_session_name"), .origin = origin},
                                 trimmed_http(file_of_token(file)));
  for (const char* other : {"sso_session", "sso_start_url", "credential_process", "login_session"})
    if (!value(other).empty()) unsupported_source_ = other;
  if ((is_named_ || depth > 0) && !unsupported_source_.empty())
    throw setup_error(
        origin + " contains no access keys, but " + unsupported_source_ + ", which Millrace does not support",
        export_hint, {.stage = "remote"});
  return std::nullopt;
}

MILLRACE_INLINE std::optional<provided_keys> credential_sources::static_keys(const std::string& profile,
                                                                             const std::string& origin) const {
  signing_keys keys{.access_key_id = value_in(profile, "aws_access_key_id"),
                    .secret_access_key = value_in(profile, "aws_secret_access_key"),
                    .session_token = value_in(profile, "aws_session_token")};
  if (keys.access_key_id.empty() && keys.secret_access_key.empty()) return std::nullopt;
  return checked({.keys = std::move(keys), .origin = origin});
}

MILLRACE_INLINE std::optional<provided_keys> credential_sources::from_credential_source(
    const std::string& credential_source, const std::string& origin) const {
  if (credential_source == "Environment") return from_environment();
  if (credential_source == "EcsContainer") return from_container();
  if (credential_source == "Ec2InstanceMetadata") return from_instance();
  throw setup_error("the credential_source of " + origin + " is wrong: got " + printable(credential_source) +
                        ", expected Environment, EcsContainer or Ec2InstanceMetadata",
                    "Correct " + printable(config_path_), {.stage = "remote"});
}

MILLRACE_INLINE bool credential_sources::may_receive_token(std::string_view url) {
  const url_parts parts(url);
  if (parts.scheme == "https") return true;
  std::string_view host = parts.host;
  if (parts.scheme != "http" || host.find('@') != std::string_view::npos) return false;
  if (host.starts_with('[')) host = host.substr(1, host.find(']') - 1);
  else host = host.substr(0, host.find(':'));
  const bool loopback = host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos;
  return loopback || host == "localhost" || host == "::1" || host == "169.254.170.2" || host == "169.254.170.23" ||
         host == "fd00:ec2::23";
}

MILLRACE_INLINE profile_file profile_file::parse(std::string_view text, std::string_view path) {
  profile_file file;
  std::map<std::string, std::string>* section = nullptr;
  std::string above;   // the name to which indented lines belong
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end), content = trimmed_http(line);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (content.empty() || content[0] == '#' || content[0] == ';') continue;
    if (content[0] == '[') {
      const std::size_t close = content.find(']');
      if (close == std::string_view::npos) fail(path, number);
      section = &file.sections_[section_name(content.substr(1, close - 1))];
      above.clear();
      continue;
    }
    const bool indented = line[0] == ' ' || line[0] == '\t';
    const std::size_t equals = content.find('=');
    if (!section) fail(path, number);
    if (equals == std::string_view::npos || equals == 0) {
      if (!indented || above.empty()) fail(path, number);
      continue;   // a continuation line, which no value that Millrace reads has
    }
    const std::string name = http_lower(trimmed_http(content.substr(0, equals)));
    const std::string_view value = without_comment(trimmed_http(content.substr(equals + 1)));
    if (indented && !above.empty()) {
      (*section)[above + '.' + name] = value;
    } else {
      (*section)[name] = value;
      above = name;
    }
  }
  return file;
}

MILLRACE_INLINE std::string profile_file::value(const std::string& section, const std::string& name) const {
  const auto values = sections_.find(section);
  if (values == sections_.end()) return {};
  const auto of_name = values->second.find(name);
  return of_name == values->second.end() ? std::string() : of_name->second;
}

MILLRACE_INLINE void profile_file::fail(std::string_view path, std::size_t line) {
  throw profile_error("a profile file is wrong: line " + std::to_string(line) + " of " + printable(path) +
                          " is neither [SECTION] nor NAME = VALUE",
                      "Correct the line; `aws configure list` reads the same file", {.stage = "remote"});
}

MILLRACE_INLINE std::string profile_file::section_name(std::string_view text) {
  std::string name;
  for (const char c : trimmed_http(text)) {
    const bool blank = c == ' ' || c == '\t';
    if (c != '"' && c != '\'' && !(blank && name.ends_with(' '))) name += blank ? ' ' : c;
  }
  return name;
}

MILLRACE_INLINE std::string_view profile_file::without_comment(std::string_view value) noexcept {
  for (std::size_t i = 1; i < value.size(); ++i)
    if ((value[i] == '#' || value[i] == ';') && (value[i - 1] == ' ' || value[i - 1] == '\t'))
      return trimmed_http(value.substr(0, i - 1));
  return value;
}

}}}   // namespace millrace::detail
