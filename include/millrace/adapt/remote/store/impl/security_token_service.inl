// Definitions for security_token_service.hpp.
#pragma once

#include <millrace/adapt/remote/store/security_token_service.hpp>

#include <millrace/adapt/remote/store/sha256.hpp>
#include <millrace/adapt/remote/store/uri_encoding.hpp>
#include <millrace/adapt/remote/store/utc_time.hpp>
#include <millrace/adapt/remote/store/xml_reader.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE found_keys keys_of_answer(found_keys found, const std::string& expiration) {
  const bool whole = !found.keys.access_key_id.empty() && !found.keys.secret_access_key.empty();
  const auto expires = utc_seconds(expiration);
  if (!whole || (!expires && !expiration.empty()))
    throw io_error(found.origin + " returned no keys: its answer lacks " +
                       (whole ? "a time at which the keys expire" : "a key id or its secret"),
                   "Check the role of this machine", {.stage = "remote"});
  if (expires) found.keys.expires_seconds = *expires;
  return found;
}

MILLRACE_INLINE found_keys security_token_service::assume(const role_request& wanted, const signing_keys& keys) const {
  std::string form = form_of("AssumeRole", wanted);
  if (!wanted.external_id.empty()) form += "&ExternalId=" + uri_encoded(wanted.external_id, slash::encoded);
  return ask(wanted, form, &keys);
}

MILLRACE_INLINE found_keys security_token_service::assume_by_token(const role_request& wanted,
                                                                   std::string_view token) const {
  return ask(wanted,
             form_of("AssumeRoleWithWebIdentity", wanted) +
                 "&WebIdentityToken=" + uri_encoded(token, slash::encoded), nullptr);
}

MILLRACE_INLINE std::string security_token_service::form_of(const char* action, const role_request& wanted) const {
  const std::string session =
      wanted.session.empty() ? "millrace-" + std::to_string(around_.now_seconds()) : wanted.session;
  return std::string("Action=") + action + "&Version=2011-06-15&RoleArn=" + uri_encoded(wanted.role, slash::encoded) +
         "&RoleSessionName=" + uri_encoded(session, slash::encoded);
}

MILLRACE_INLINE std::string security_token_service::endpoint() const {
  std::string url = around_.variable("AWS_ENDPOINT_URL_STS");
  if (url.empty() && region_.empty()) url = "https://sts.amazonaws.com";
  if (url.empty())
    url = "https://sts." + region_ + (region_.starts_with("cn-") ? ".amazonaws.com.cn" : ".amazonaws.com");
  if (url_parts(url).path == "/" && !url.ends_with('/')) url += '/';
  return url;
}

MILLRACE_INLINE found_keys security_token_service::ask(const role_request& wanted, const std::string& form,
                                                       const signing_keys* keys) const {
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
    throw io_error(wanted.origin + " returned no keys: STS answered status " + std::to_string(answer.status) +
                       (code.empty() ? "" : ", " + printable(code, 64)),
                   "Check the role " + printable(wanted.role) + ", and who may assume it", {.stage = "remote"});
  return keys_of_answer(std::move(found), expiration);
}

}}}  // namespace millrace::detail
