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
#include <millrace/adapt/remote/store/uri_encoding.hpp>
#include <millrace/adapt/remote/store/xml_reader.hpp>

#include <optional>
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
inline found_keys keys_of_answer(found_keys found, const std::string& expiration) {
  const bool whole = !found.keys.access_key_id.empty() && !found.keys.secret_access_key.empty();
  const auto expires = utc_seconds(expiration);
  if (!whole || (!expires && !expiration.empty()))
    throw io_error(found.origin + " gives no keys: its answer lacks " +
                       (whole ? "a time at which the keys expire" : "a key id or its secret"),
                   "Check the role of this machine", {.stage = "remote"});
  if (expires) found.keys.expires_seconds = *expires;
  return found;
}

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
  found_keys assume(const role_request& wanted, const signing_keys& keys) const {
    std::string form = form_of("AssumeRole", wanted);
    if (!wanted.external_id.empty()) form += "&ExternalId=" + uri_encoded(wanted.external_id, slash::encoded);
    return ask(wanted, form, &keys);
  }

  /// Returns the role's keys for those who hold a token of an identity provider.
  found_keys assume_by_token(const role_request& wanted, std::string_view token) const {
    return ask(wanted,
               form_of("AssumeRoleWithWebIdentity", wanted) +
                   "&WebIdentityToken=" + uri_encoded(token, slash::encoded), nullptr);
  }

 private:
  std::string form_of(const char* action, const role_request& wanted) const {
    const std::string session =
        wanted.session.empty() ? "millrace-" + std::to_string(around_.now_seconds()) : wanted.session;
    return std::string("Action=") + action + "&Version=2011-06-15&RoleArn=" + uri_encoded(wanted.role, slash::encoded) +
           "&RoleSessionName=" + uri_encoded(session, slash::encoded);
  }

  std::string endpoint() const {
    std::string url = around_.variable("AWS_ENDPOINT_URL_STS");
    if (url.empty() && region_.empty()) url = "https://sts.amazonaws.com";
    if (url.empty())
      url = "https://sts." + region_ + (region_.starts_with("cn-") ? ".amazonaws.com.cn" : ".amazonaws.com");
    if (url_parts(url).path == "/" && !url.ends_with('/')) url += '/';
    return url;
  }

  found_keys ask(const role_request& wanted, const std::string& form, const signing_keys* keys) const {
    // In the body: what logs requests, logs URLs.
    small_request request{.method = "POST", .url = endpoint(),
                          .headers = {{"Content-Type", "application/x-www-form-urlencoded"}}, .body = form};
    if (keys) {
      const signature_v4 signature{.credentials = *keys, .region = region_.empty() ? "us-east-1" : region_,
                                   .service = "sts", .payload_hash = hex_text(sha256(form)),
                                   .sends_payload_hash = false};
      const header_list more = signature.headers(
          {.method = "POST", .url = request.url, .headers = request.headers}, around_.now_seconds());
      request.headers.insert(request.headers.end(), more.begin(), more.end());
    }
    const small_answer answer = around_.fetch(request);
    found_keys found{.keys = {}, .origin = wanted.origin};
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
      throw io_error(wanted.origin + " gives no keys: STS answers status " + std::to_string(answer.status) +
                         (code.empty() ? "" : ", " + printable(code, 64)),
                     "Check the role " + printable(wanted.role) + ", and who may assume it", {.stage = "remote"});
    return keys_of_answer(std::move(found), expiration);
  }

  const surroundings& around_;
  std::string region_;
};

}}}  // namespace millrace::detail
