// Definitions for object_access.hpp.
#pragma once

#include <millrace/adapt/remote/store/object_access.hpp>

#include <millrace/adapt/remote/store/utc_time.hpp>
#include <millrace/adapt/remote/store/xml_reader.hpp>

#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE bool store_answer::concerns_keys() const noexcept {
  for (const char* const of_keys :
       {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "InvalidToken", "InvalidSecurity",
        // While a key file is being replaced, it may contain the new key id with the old secret, or a part of the
        // secret.
        "InvalidAccessKeyId", "InvalidClientTokenId", "SignatureDoesNotMatch"})
    if (code == of_keys) return true;
  return status == 401 || (code.empty() && (status == 400 || status == 403));
}

MILLRACE_INLINE io_error store_answer::failure(const std::string& name, const std::string& origin,
                                               std::int64_t now_seconds) const {
  std::string text = "the store refuses a request: got status " + std::to_string(status);
  if (!code.empty()) text += " " + printable(code, 64);
  if (!sentence.empty()) text += " (" + printable(sentence, 300) + ")";
  text += ", expected 200";
  if (code == "RequestTimeTooSkewed" && server_seconds) {
    const std::int64_t ahead = now_seconds - *server_seconds;
    text += "; this machine's clock is " + std::to_string(ahead < 0 ? -ahead : ahead) + " seconds " +
            (ahead < 0 ? "behind" : "ahead of") + " the server's";
  }
  return io_error(text + attempted, advice(origin), {.stage = "remote", .shard = name});
}

MILLRACE_INLINE std::string store_answer::advice(const std::string& origin) const {
  const std::string keys = origin.empty() ? "without keys" : "with keys of " + origin;
  if (code == "RequestTimeTooSkewed") return "Set this machine's clock";
  if (code == "NoSuchBucket") return "Correct the bucket, or the endpoint";
  if (code == "SignatureDoesNotMatch") return "Correct the secret access key. The request was signed " + keys;
  if (code == "InvalidAccessKeyId") return "Correct the access key id. The request was signed " + keys;
  if (code == "ExpiredToken" || code == "InvalidToken" || status == 401)
    return "Renew the keys. The request was signed " + keys;
  if (status == 301 || status == 307 || code == "AuthorizationHeaderMalformed")
    return "Name the bucket's region: AWS_REGION, or s3_options::region";
  if (status == 403 || status == 400)
    return "Check the permissions to read and to list the bucket. The request was sent " + keys +
           ". Without the permission to list, a store also refuses names that do not exist";
  if (is_transient()) return "Try again later, or with fewer concurrent requests";
  return "See the documentation of the store for this code";
}

MILLRACE_INLINE store_answer read_store_answer(const small_answer& answer) {
  store_answer result{.status = answer.status,
                      .region = std::string(header_value(answer.headers, "x-amz-bucket-region")),
                      .server_seconds = http_date_seconds(header_value(answer.headers, "date"))};
  std::optional<std::int64_t> server_time;
  try {
    xml_reader(answer.body).for_each([&](std::string_view at, const std::string& content) {
      if (at == "Error/Code") result.code = content;
      else if (at == "Error/Message") result.sentence = content;
      else if (at == "Error/Region" && result.region.empty()) result.region = content;
      else if (at == "Error/ServerTime") server_time = utc_seconds(content);
    });
  } catch (const data_error&) {
    // Proxies may send HTML.
  }
  if (server_time) result.server_seconds = server_time;
  return result;
}

}}}   // namespace millrace::detail
