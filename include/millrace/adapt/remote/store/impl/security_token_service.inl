// Definitions for security_token_service.hpp.
#pragma once

#include <millrace/adapt/remote/store/security_token_service.hpp>

#include <millrace/adapt/remote/store/signature_v4.hpp>
#include <millrace/adapt/remote/store/uri_encoding.hpp>
#include <millrace/adapt/remote/store/utc_time.hpp>
#include <millrace/adapt/remote/store/xml_reader.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE provided_keys keys_of_response(provided_keys provided, const std::string& expiration) {
  const bool is_complete = !provided.keys.access_key_id.empty() && !provided.keys.secret_access_key.empty();
  const auto expires = utc_seconds(expiration);
  if (!is_complete || (!expires && !expiration.empty()))
    throw io_error(provided.origin + " returned incomplete access keys: its answer lacks " +
                       (is_complete ? "a valid expiration time" : "a key id or its secret"),
                   "Check the role of this machine", {.stage = "remote"});
  if (expires) provided.keys.expires_seconds = *expires;
  return provided;
}

MILLRACE_INLINE provided_keys security_token_service::assume(const role_request& role, const signing_keys& keys) const {
  std::string form = form_of("AssumeRole", role);
  if (!role.external_id.empty()) form += "&ExternalId=" + uri_encoded(role.external_id, slash::encoded);
  return send(role, form, &keys);
}

MILLRACE_INLINE provided_keys security_token_service::assume_by_token(const role_request& role,
                                                                      std::string_view token) const {
  return send(role,
              form_of("AssumeRoleWithWebIdentity", role) + "&WebIdentityToken=" + uri_encoded(token, slash::encoded),
              nullptr);
}

MILLRACE_INLINE std::string security_token_service::form_of(const char* action, const role_request& role) const {
  const std::string session = role.session.empty() ? "millrace-" + std::to_string(env_.now_seconds()) : role.session;
  return std::string("Action=") + action + "&Version=2011-06-15&RoleArn=" + uri_encoded(role.role, slash::encoded) +
         "&RoleSessionName=" + uri_encoded(session, slash::encoded);
}

MILLRACE_INLINE std::string security_token_service::endpoint() const {
  std::string url = env_.variable("AWS_ENDPOINT_URL_STS");
  if (url.empty() && region_.empty()) url = "https://sts.amazonaws.com";
  if (url.empty())
    url = "https://sts." + region_ + (region_.starts_with("cn-") ? ".amazonaws.com.cn" : ".amazonaws.com");
  if (url_parts(url).path == "/" && !url.ends_with('/')) url += '/';
  return url;
}

MILLRACE_INLINE provided_keys security_token_service::send(const role_request& role, const std::string& form,
                                                           const signing_keys* keys) const {
  // Send the parameters in the body, because proxies and access logs record URLs.
  small_request request{.method = "POST",
                        .url = endpoint(),
                        .headers = {{"Content-Type", "application/x-www-form-urlencoded"}},
                        .body = form};
  if (keys) {
    const signature_v4 signature{.credentials = *keys,
                                 .region = region_.empty() ? "us-east-1" : region_,
                                 .service = "sts",
                                 .payload_hash = signature_hex(sha256(form)),
                                 .sends_payload_hash = false};
    const header_list more = signature.headers({.method = "POST", .url = request.url, .headers = request.headers},
                                               env_.now_seconds());
    request.headers.insert(request.headers.end(), more.begin(), more.end());
  }
  const small_answer answer = env_.fetch(request);
  provided_keys provided{.keys = {}, .origin = role.origin};
  std::string expiration, code;
  try {
    xml_reader(answer.body).for_each([&](std::string_view at, const std::string& content) {
      if (at.ends_with("/Credentials/AccessKeyId")) provided.keys.access_key_id = content;
      else if (at.ends_with("/Credentials/SecretAccessKey")) provided.keys.secret_access_key = content;
      else if (at.ends_with("/Credentials/SessionToken")) provided.keys.session_token = content;
      else if (at.ends_with("/Credentials/Expiration")) expiration = content;
      else if (at.ends_with("/Error/Code")) code = content;
    });
  } catch (const data_error&) {
    code = "text that is not XML";
  }
  if (answer.status != 200)
    throw io_error(role.origin + " returned no access keys: STS answered status " + std::to_string(answer.status) +
                       (code.empty() ? "" : ", " + printable(code, 64)),
                   "Check the role " + printable(role.role) + ", and who may assume it", {.stage = "remote"});
  return keys_of_response(std::move(provided), expiration);
}

}}}   // namespace millrace::detail
