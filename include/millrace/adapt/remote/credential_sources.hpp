// The places in which keys for Amazon's services are looked for.
//
//   mr::detail::credential_sources sources(around, {.profile = "train"});
//   if (auto found = sources.from_environment()) use(found->keys);
//   sources.find();       // all of them in turn
//
// A place that is not in use gives nothing. Errors: setup_error or io_error for a place that is in use and wrong; no
// message holds a secret or what a server of credentials answered. Threads: one at a time.
// Source: the AWS SDKs and Tools Reference Guide, "Standardized credential providers".
#pragma once

#include <millrace/adapt/remote/profile_file.hpp>
#include <millrace/adapt/remote/signature_v4.hpp>
#include <millrace/adapt/remote/surroundings.hpp>
#include <millrace/adapt/remote/uri_encoding.hpp>
#include <millrace/adapt/remote/xml_reader.hpp>
#include <millrace/sources/json_objects.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Keys, and the words for where they are from.
struct found_keys {
  signing_keys keys{};
  std::string origin{};
};

/// Looks for keys.
class credential_sources {
 public:
  struct choice {
    std::string profile{}, region{};   ///< the profile that the program names; where STS is asked
  };

  credential_sources(const surroundings& around, choice chosen) : around_(around), chosen_(std::move(chosen)) {
    profile_ = !chosen_.profile.empty() ? chosen_.profile : around_.variable("AWS_PROFILE");
    is_named_ = !profile_.empty();
    if (!is_named_) profile_ = "default";
  }

  /// Returns the keys of the first place that has some; nothing if none has.
  std::optional<found_keys> find() {
    if (chosen_.profile.empty())
      if (auto found = from_environment()) return found;
    if (auto found = from_profile()) return found;
    if (auto found = from_web_identity()) return found;
    if (auto found = from_container()) return found;
    return from_instance();
  }

  std::optional<found_keys> from_environment() const {
    signing_keys keys{.access_key_id = around_.variable("AWS_ACCESS_KEY_ID"),
                      .secret_access_key = around_.variable("AWS_SECRET_ACCESS_KEY"),
                      .session_token = around_.variable("AWS_SESSION_TOKEN")};
    if (keys.access_key_id.empty() && keys.secret_access_key.empty()) return std::nullopt;
    return whole({.keys = std::move(keys), .origin = "the environment"});
  }

  std::optional<found_keys> from_profile() {
    load_profiles();
    const std::string in_config = profile_ == "default" ? profile_ : "profile " + profile_;
    if (is_named_ && !credentials_.has(profile_) && !config_.has(in_config) && !config_.has("profile " + profile_))
      throw setup_error("the profile " + printable('"' + profile_ + '"') + " is unknown: expected it in " +
                            printable(credentials_path_) + " or " + printable(config_path_),
                        "Correct AWS_PROFILE or s3_options::profile", {.stage = "remote"});
    signing_keys keys{.access_key_id = profile_value("aws_access_key_id"),
                      .secret_access_key = profile_value("aws_secret_access_key"),
                      .session_token = profile_value("aws_session_token")};
    const std::string origin = "the profile " + printable('"' + profile_ + '"');
    if (!keys.access_key_id.empty() || !keys.secret_access_key.empty())
      return whole({.keys = std::move(keys), .origin = origin});
    const std::string token_file = profile_value("web_identity_token_file"), role = profile_value("role_arn");
    if (!token_file.empty() && !role.empty())
      return from_token_file(token_file, role, profile_value("role_session_name"), origin);
    for (const char* other : {"sso_session", "sso_start_url", "credential_process", "role_arn", "login_session"})
      if (!profile_value(other).empty()) unread_ = other;
    if (is_named_ && !unread_.empty())
      throw setup_error(origin + " has no keys, but " + unread_ + ", which Millrace does not follow", export_hint,
                        {.stage = "remote"});
    return std::nullopt;
  }

  std::optional<found_keys> from_web_identity() const {
    const std::string file = around_.variable("AWS_WEB_IDENTITY_TOKEN_FILE"), role = around_.variable("AWS_ROLE_ARN");
    if (file.empty() || role.empty()) return std::nullopt;
    return from_token_file(file, role, around_.variable("AWS_ROLE_SESSION_NAME"), "the web identity");
  }

  std::optional<found_keys> from_container() const {
    const std::string relative = around_.variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const std::string full = around_.variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    if (relative.empty() && full.empty()) return std::nullopt;
    const std::string url = relative.empty() ? full : "http://169.254.170.2" + relative;
    if (relative.empty() && !may_have_token(url))
      throw setup_error("AWS_CONTAINER_CREDENTIALS_FULL_URI is wrong: got " + printable(url) +
                            ", expected https, this machine, or the address of a container's agent",
                        "Correct the variable: others on the network could read the keys", {.stage = "remote"});
    small_request request{.url = url, .seconds = 5};
    std::string token = around_.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    if (const std::string file = around_.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); !file.empty())
      token = trimmed(file_of_token(file));
    if (token.find_first_of("\r\n") != std::string::npos)
      throw setup_error("the container's authorization token is wrong: it has several lines", "Write it as one line",
                        {.stage = "remote"});
    if (!token.empty()) request.headers.emplace_back("Authorization", token);
    return from_json(answer_of(request, "the container's agent"), "the container's agent");
  }

  std::optional<found_keys> from_instance() const {
    if (around_.is_on("AWS_EC2_METADATA_DISABLED")) return std::nullopt;
    std::string base = around_.variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    if (base.empty()) base = "http://169.254.169.254";
    while (base.ends_with('/')) base.pop_back();
    const std::string roles = base + "/latest/meta-data/iam/security-credentials/";
    small_request request{.method = "PUT", .url = base + "/latest/api/token",
                          .headers = {{"X-aws-ec2-metadata-token-ttl-seconds", "21600"}}, .seconds = 1, .attempts = 1};
    small_answer answer;
    try {
      answer = around_.fetch(request);
    } catch (const io_error&) {
      return std::nullopt;   // this is not an instance
    }
    if (answer.status != 200) return std::nullopt;
    const std::string token(trimmed(answer.body));
    if (token.empty() || token.find_first_of("\r\n") != std::string::npos) return std::nullopt;
    small_request next{.url = roles, .headers = {{"X-aws-ec2-metadata-token", token}}, .seconds = 5};
    answer = around_.fetch(next);
    if (answer.status == 404) return std::nullopt;   // an instance without a role
    if (answer.status != 200) fail_status("the instance's metadata", answer.status);
    next.url += uri_encoded(trimmed(answer.body.substr(0, answer.body.find('\n'))), slash::encoded);
    return from_json(answer_of(next, "the instance's metadata"), "the instance's metadata");
  }

  /// Returns a value of the profile that is in use; the credentials file comes before the config file.
  std::string profile_value(const std::string& name) {
    load_profiles();
    if (const std::string value = credentials_.value(profile_, name); !value.empty()) return value;
    return config_value(name);
  }

  /// As profile_value(), of the profile's services section: where S3 is.
  std::string service_endpoint() {
    load_profiles();
    const std::string services = config_value("services");
    return services.empty() ? std::string() : config_.value("services " + services, "s3.endpoint_url");
  }

  /// Returns what the profile has in the place of keys, and is not followed; empty if nothing.
  const std::string& unread() const noexcept { return unread_; }

  static constexpr const char* export_hint =
      "Run `eval \"$(aws configure export-credentials --format env)\"` before this program, or set "
      "s3_options::credentials";

 private:
  [[noreturn]] static void fail_status(const std::string& who, int status) {
    throw io_error(who + " gives no keys: got status " + std::to_string(status) + ", expected 200",
                   "Check the role of this machine", {.stage = "remote"});
  }

  static found_keys whole(found_keys found) {
    if (found.keys.access_key_id.empty() || found.keys.secret_access_key.empty())
      throw setup_error("half of a key is missing: " + found.origin + " has a " +
                            (found.keys.access_key_id.empty() ? "secret access key without its id"
                                                              : "key id without its secret access key"),
                        "Give both, or neither", {.stage = "remote"});
    return found;
  }

  void load_profiles() {
    if (loaded_) return;
    loaded_ = true;
    const auto load = [&](const char* variable, const char* usual, std::string& path) {
      path = around_.variable(variable);
      if (path.empty()) path = around_.variable("HOME") + usual;
      const auto text = around_.read_file(path);
      return profile_file::parse(text ? *text : std::string(), path);
    };
    credentials_ = load("AWS_SHARED_CREDENTIALS_FILE", "/.aws/credentials", credentials_path_);
    config_ = load("AWS_CONFIG_FILE", "/.aws/config", config_path_);
  }

  std::string config_value(const std::string& name) const {
    if (const std::string value = config_.value("profile " + profile_, name); !value.empty()) return value;
    return profile_ == "default" ? config_.value(profile_, name) : std::string();
  }

  std::string file_of_token(const std::string& path) const {
    auto text = around_.read_file(path);
    if (!text || trimmed(*text).empty())
      throw io_error("the token file " + printable(path) + " cannot be read, or it is empty",
                     "Look whether the file is there, and who may read it", {.stage = "remote"});
    return *text;
  }

  std::string answer_of(const small_request& request, const std::string& who) const {
    small_answer answer = around_.fetch(request);
    if (answer.status != 200) fail_status(who, answer.status);
    return std::move(answer.body);
  }

  /// Reads what a container's agent and an instance's metadata answer.
  static found_keys from_json(const std::string& body, const std::string& who) {
    found_keys found{.keys = {}, .origin = who};
    std::string expiration;
    try {
      json_objects(body, who).for_each([&](const auto& members) {
        for (const auto& m : members) {
          if (m.key == "AccessKeyId") found.keys.access_key_id = m.text;
          else if (m.key == "SecretAccessKey") found.keys.secret_access_key = m.text;
          else if (m.key == "Token") found.keys.session_token = m.text;
          else if (m.key == "Expiration") expiration = m.text;
        }
      });
    } catch (const data_error&) {
      throw io_error(who + " gives no keys: its answer cannot be read as JSON", "Check the role of this machine",
                     {.stage = "remote"});
    }
    return with_expiration(std::move(found), expiration);
  }

  static found_keys with_expiration(found_keys found, const std::string& expiration) {
    const auto expires = utc_seconds(expiration);
    if (found.keys.access_key_id.empty() || found.keys.secret_access_key.empty() || (!expires && !expiration.empty()))
      throw io_error(found.origin + " gives no keys: its answer lacks " +
                         (found.keys.access_key_id.empty() || found.keys.secret_access_key.empty()
                              ? "a key id or its secret" : "a time at which the keys expire"),
                     "Check the role of this machine", {.stage = "remote"});
    if (expires) found.keys.expires_seconds = *expires;
    return found;
  }

  /// Asks STS for the keys of a role, with a token that says who we are.
  found_keys from_token_file(const std::string& path, const std::string& role, std::string session,
                             const std::string& origin) const {
    const std::string token(trimmed(file_of_token(path)));
    if (session.empty()) session = "millrace-" + std::to_string(around_.now_seconds());
    std::string url = around_.variable("AWS_ENDPOINT_URL_STS");
    if (url.empty())
      url = chosen_.region.empty() ? "https://sts.amazonaws.com"
                                   : "https://sts." + chosen_.region +
                                         (chosen_.region.starts_with("cn-") ? ".amazonaws.com.cn" : ".amazonaws.com");
    if (url_parts(url).path == "/" && !url.ends_with('/')) url += '/';
    // In the body: what logs requests, logs URLs.
    const small_answer answer = around_.fetch(
        {.method = "POST", .url = url, .headers = {{"Content-Type", "application/x-www-form-urlencoded"}},
         .body = "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=" + uri_encoded(role, slash::encoded) +
                 "&RoleSessionName=" + uri_encoded(session, slash::encoded) +
                 "&WebIdentityToken=" + uri_encoded(token, slash::encoded)});
    found_keys found{.keys = {}, .origin = origin};
    std::string expiration, code;
    try {
      xml_reader(answer.body).for_each([&](std::string_view at, const std::string& content) {
        if (at.ends_with("/Credentials/AccessKeyId")) found.keys.access_key_id = content;
        else if (at.ends_with("/Credentials/SecretAccessKey")) found.keys.secret_access_key = content;
        else if (at.ends_with("/Credentials/SessionToken")) found.keys.session_token = content;
        else if (at.ends_with("/Credentials/Expiration")) expiration = content;
        else if (at.ends_with("/Error/Code")) code = content;
      });
    } catch (const data_error&) {
      code = "text that is not XML";
    }
    if (answer.status != 200)
      throw io_error(origin + " gives no keys: STS answers status " + std::to_string(answer.status) +
                         (code.empty() ? "" : ", " + printable(code, 64)),
                     "Check the role " + printable(role) + ", and who may assume it", {.stage = "remote"});
    return with_expiration(std::move(found), expiration);
  }

  /// Whether a token may be sent to this URL: nobody else hears it.
  static bool may_have_token(std::string_view url) {
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

  const surroundings& around_;
  choice chosen_;
  std::string profile_, credentials_path_, config_path_, unread_;
  bool is_named_ = false, loaded_ = false;
  profile_file credentials_, config_;
};

}}}  // namespace millrace::detail
