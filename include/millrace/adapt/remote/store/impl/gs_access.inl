// Definitions for gs_access.hpp.
#pragma once

#include <millrace/adapt/remote/store/gs_access.hpp>

#include <millrace/adapt/remote/store/google_key_file.hpp>
#include <millrace/adapt/remote/store/s3_access.hpp>
#include <millrace/adapt/remote/store/uri_encoding.hpp>
#include <millrace/base/json_objects.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE addressed_request gs_access::address(std::string_view method, const object_url& object,
                                                     std::string_view query) {
  addressed_request request{.region = "auto"};
  request.url = endpoint() + '/' + object.bucket + '/' + uri_encoded(object.key, slash::unchanged);
  if (!query.empty()) request.url.append("?").append(query);
  if (options_.anonymous || is_emulated()) return request;
  provided_keys provided = keys_.get();
  request.keys = std::move(provided.keys);
  request.origin = std::move(provided.origin);
  if (request.keys.access_key_id.empty())
    request.headers.emplace_back("Authorization", "Bearer " + request.keys.session_token);
  else
    request.headers = signature_v4{.credentials = request.keys, .region = request.region}.headers(
        {.method = method, .url = request.url}, env_.now_seconds());
  return request;
}

MILLRACE_INLINE remedy gs_access::handle_refusal(const object_url&, const addressed_request& sent,
                                                 const store_answer& answer) {
  if (sent.origin.empty() || !answer.concerns_keys()) return {};
  return keys_.refused(sent.keys);
}

MILLRACE_INLINE bool gs_access::is_emulated() const {
  return options_.endpoint.empty() && !options_.bearer_token && !options_.hmac_key &&
         !env_.variable("STORAGE_EMULATOR_HOST").empty();
}

MILLRACE_INLINE std::string gs_access::endpoint() const {
  std::string url = options_.endpoint;
  if (url.empty()) url = env_.variable("STORAGE_EMULATOR_HOST");
  if (url.empty()) return "https://storage.googleapis.com";
  if (url.find("://") == std::string::npos) url = "http://" + url;
  return checked_endpoint(url, "gs_options::endpoint or STORAGE_EMULATOR_HOST");
}

MILLRACE_INLINE provided_keys gs_access::of_token(std::string token, std::int64_t expires_seconds, const char* origin) {
  if (token.empty() || token.find_first_of(" \r\n") != std::string::npos)
    throw setup_error(std::string(origin) + " has an invalid bearer token: expected one word",
                      "Remove its spaces and line breaks", {.stage = "remote"});
  return {.keys = {.session_token = std::move(token), .expires_seconds = expires_seconds}, .origin = origin};
}

MILLRACE_INLINE provided_keys gs_access::as_fixed(provided_keys provided) {
  provided.is_fixed = true;
  return provided;
}

MILLRACE_INLINE provided_keys gs_access::find_keys() const {
  // A token of the user is requested each minute, because only the user knows when it expires.
  if (options_.bearer_token)
    return of_token(options_.bearer_token(), env_.now_seconds() + key_provider::pause_seconds,
                    "gs_options::bearer_token");
  if (options_.hmac_key) return keys_of_user(options_.hmac_key(), "gs_options::hmac_key");
  if (std::string token = env_.variable("GOOGLE_OAUTH_ACCESS_TOKEN"); !token.empty())
    return as_fixed(of_token(std::move(token), signing_keys::never, "GOOGLE_OAUTH_ACCESS_TOKEN"));
  signing_keys keys{.access_key_id = env_.variable("GS_ACCESS_KEY_ID"),
                    .secret_access_key = env_.variable("GS_SECRET_ACCESS_KEY")};
  if (!keys.access_key_id.empty() && !keys.secret_access_key.empty())
    return {.keys = std::move(keys), .origin = "the environment", .is_fixed = true};
  if (auto provided = google_key_file(env_).token()) return *provided;
  if (auto provided = from_instance()) return *provided;
  throw no_keys_error(
      "keys for gs:// names are missing: found none in the environment (GOOGLE_OAUTH_ACCESS_TOKEN, or "
      "GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY), in a gcloud key file, or from the instance",
      "Set GOOGLE_OAUTH_ACCESS_TOKEN=$(gcloud auth print-access-token), or gs_options::anonymous for a public bucket",
      {.stage = "remote"});
}

MILLRACE_INLINE std::optional<provided_keys> gs_access::from_instance() const {
  constexpr const char* who = "the instance's metadata";
  std::string host = env_.variable("GCE_METADATA_HOST");
  if (host.empty()) host = "169.254.169.254";
  small_answer answer;
  try {
    answer = env_.fetch({.url = "http://" + host + "/computeMetadata/v1/instance/service-accounts/default/token",
                         .headers = {{"Metadata-Flavor", "Google"}},
                         .seconds = 1,
                         .attempts = 1});
  } catch (const io_error&) {
    return std::nullopt;   // this machine is not an instance
  }
  // In other clouds, another server has this address.
  if (answer.status != 200 || header_value(answer.headers, "Metadata-Flavor") != "Google") return std::nullopt;
  std::string token;
  std::uint64_t lasts = 0;
  try {
    json_objects(answer.body, who).for_each([&](const auto& members) {
      for (const auto& m : members) {
        if (m.key == "access_token") token = m.text;
        else if (m.key == "expires_in") lasts = m.number.value_or(0);
      }
    });
  } catch (const data_error&) {
    token.clear();
  }
  if (token.empty() || lasts == 0 || lasts > 1'000'000)
    throw io_error(std::string(who) + " returned no token: its answer cannot be parsed",
                   "Check the service account of this instance", {.stage = "remote"});
  return of_token(std::move(token), env_.now_seconds() + static_cast<std::int64_t>(lasts), who);
}

}}}   // namespace millrace::detail
