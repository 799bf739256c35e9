// Definitions for gs_access.hpp.
#pragma once

#include <millrace/adapt/remote/store/gs_access.hpp>

#include <millrace/adapt/remote/store/s3_access.hpp>
#include <millrace/adapt/remote/store/uri_encoding.hpp>
#include <millrace/base/json_objects.hpp>

#if !__has_include(<openssl/pem.h>)
#error "millrace: OpenSSL is not installed: apt-get install libssl-dev"
#endif
#include <openssl/pem.h>

#include <millrace/adapt/remote/store/uri_encoding.hpp>
#include <millrace/base/error.hpp>
#include <millrace/base/json_objects.hpp>
#include <millrace/base/json_writer.hpp>

#include <memory>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::string base64_url(std::string_view bytes) {
  constexpr const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string text;
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char c : bytes) {
    bits = bits << 8 | static_cast<unsigned char>(c);
    for (count += 8; count >= 6; count -= 6) text += digits[bits >> (count - 6) & 63];
  }
  if (count > 0) text += digits[bits << (6 - count) & 63];
  return text;
}

/// Returns the RSA signature with SHA-256 of the text, or nothing if the key cannot be read.
MILLRACE_INLINE std::optional<std::string> rsa_signature(const std::string& private_key_pem, std::string_view text) {
  struct closer {
    void operator()(BIO* bio) const noexcept { BIO_free(bio); }
    void operator()(EVP_PKEY* key) const noexcept { EVP_PKEY_free(key); }
    void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
  };
  const std::unique_ptr<BIO, closer> bio(
      BIO_new_mem_buf(private_key_pem.data(), static_cast<int>(private_key_pem.size())));
  // Without this callback, OpenSSL would request a password on the terminal.
  const auto no_password = [](char*, int, int, void*) { return -1; };
  const std::unique_ptr<EVP_PKEY, closer> key(bio ? PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr)
                                                  : nullptr);
  const std::unique_ptr<EVP_MD_CTX, closer> context(EVP_MD_CTX_new());
  const auto* const data = reinterpret_cast<const unsigned char*>(text.data());
  std::size_t size = 0;
  if (!key || !context || EVP_PKEY_get_base_id(key.get()) != EVP_PKEY_RSA ||
      EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key.get()) != 1 ||
      EVP_DigestSign(context.get(), nullptr, &size, data, text.size()) != 1)
    return std::nullopt;
  std::string signature(size, '\0');
  if (EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, data, text.size()) != 1)
    return std::nullopt;
  signature.resize(size);
  return signature;
}

MILLRACE_INLINE std::optional<provided_keys> google_key_file::token() const {
  std::string path = env_.variable("GOOGLE_APPLICATION_CREDENTIALS");
  const bool is_named = !path.empty();
  if (!is_named) {
    const std::string folder = env_.variable("CLOUDSDK_CONFIG");
    path = (folder.empty() ? env_.variable("HOME") + "/.config/gcloud" : folder) +
           "/application_default_credentials.json";
  }
  const auto text = env_.read_file(path);
  if (!text && !is_named) return std::nullopt;
  if (!text)
    throw io_error("the key file " + printable(path) + " cannot be read", "Correct GOOGLE_APPLICATION_CREDENTIALS",
                   {.stage = "remote"});
  const auto file = members_of(*text, "the key file " + printable(path));
  const std::string type = value_of(file, "type");
  if (type == "authorized_user")
    return requested("https://oauth2.googleapis.com/token",
                     "grant_type=refresh_token&client_id=" + uri_encoded(value_of(file, "client_id"), slash::encoded) +
                         "&client_secret=" + uri_encoded(value_of(file, "client_secret"), slash::encoded) +
                         "&refresh_token=" + uri_encoded(value_of(file, "refresh_token"), slash::encoded),
                     path);
  if (type == "service_account") return of_service_account(file, path);
  throw setup_error("the key file " + printable(path) + " has an unsupported type: got " +
                        printable('"' + type + '"', 64) + ", expected authorized_user or service_account",
                    "Set GOOGLE_OAUTH_ACCESS_TOKEN=$(gcloud auth print-access-token), or gs_options::bearer_token",
                    {.stage = "remote"});
}

MILLRACE_INLINE google_key_file::members google_key_file::members_of(const std::string& json, const std::string& who) {
  members all;
  try {
    json_objects(json, "").for_each([&](const auto& of_object) {
      all.clear();
      for (const auto& m : of_object) all[m.key] = m.number ? std::to_string(*m.number) : m.text;
    });
  } catch (const data_error&) {
    throw io_error(who + " is not valid JSON", "Create the key file again with `gcloud auth application-default login`",
                   {.stage = "remote"});
  }
  return all;
}

MILLRACE_INLINE std::string google_key_file::value_of(const members& all, const std::string& name) {
  const auto member = all.find(name);
  return member == all.end() ? std::string() : member->second;
}

MILLRACE_INLINE provided_keys google_key_file::of_service_account(const members& file, const std::string& path) const {
  std::string to = value_of(file, "token_uri");
  if (to.empty()) to = "https://oauth2.googleapis.com/token";
  const std::string host(url_parts(to).host.substr(0, url_parts(to).host.find(':')));
  if (url_parts(to).scheme != "https" && host != "127.0.0.1" && host != "localhost")
    throw setup_error("the token_uri of " + printable(path) + " is wrong: expected a URL that begins with https://",
                      "Download the key file again", {.stage = "remote"});
  const std::int64_t now = env_.now_seconds();
  std::string claims = "{\"iss\":";
  append_json_string(claims, value_of(file, "client_email"));
  claims += ",\"scope\":\"https://www.googleapis.com/auth/devstorage.read_only\",\"aud\":";
  append_json_string(claims, to);
  claims += ",\"iat\":" + std::to_string(now) + ",\"exp\":" + std::to_string(now + 3'600) + "}";
  std::string head = "{\"alg\":\"RS256\",\"typ\":\"JWT\",\"kid\":";
  append_json_string(head, value_of(file, "private_key_id"));
  head += "}";
  std::string assertion = base64_url(head) + '.' + base64_url(claims);
  const auto signature = rsa_signature(value_of(file, "private_key"), assertion);
  if (!signature)
    throw io_error("the private_key of " + printable(path) + " cannot be read: expected an RSA key as PEM",
                   "Download the key file again", {.stage = "remote"});
  assertion += '.' + base64_url(*signature);
  return requested(to, "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=" + assertion, path);
}

MILLRACE_INLINE provided_keys google_key_file::requested(const std::string& url, const std::string& form,
                                                         const std::string& path) const {
  const small_answer answer = env_.fetch(
      {.method = "POST", .url = url, .headers = {{"Content-Type", "application/x-www-form-urlencoded"}}, .body = form});
  const std::string who = "Google's token server";
  const members reply = members_of(answer.body, who + "'s answer, of status " + std::to_string(answer.status) + ",");
  std::int64_t lasts = 0;
  for (const char c : value_of(reply, "expires_in").substr(0, 6))
    lasts = c >= '0' && c <= '9' ? 10 * lasts + (c - '0') : 0;
  const std::string token = value_of(reply, "access_token");
  if (answer.status != 200 || token.empty() || lasts == 0 || token.find_first_of(" \r\n") != std::string::npos)
    throw io_error(who + " returned no token: got status " + std::to_string(answer.status) + " " +
                       printable(value_of(reply, "error"), 64) + ", expected 200 with a token",
                   "Check that the key file " + printable(path) + " is still valid", {.stage = "remote"});
  return {.keys = {.session_token = token, .expires_seconds = env_.now_seconds() + lasts},
          .origin = "the key file " + printable(path)};
}

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
                      "Pass the token without spaces and line breaks", {.stage = "remote"});
  return {.keys = {.session_token = std::move(token), .expires_seconds = expires_seconds}, .origin = origin};
}

MILLRACE_INLINE provided_keys gs_access::as_fixed(provided_keys provided) {
  provided.is_fixed = true;
  return provided;
}

MILLRACE_INLINE provided_keys gs_access::find_keys() const {
  // A token of the user is requested each minute, because only the user knows when it expires.
  if (options_.bearer_token)
    return of_token(options_.bearer_token(), env_.now_seconds() + credential_provider::pause_seconds,
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
  throw no_credentials_error(
      "credentials for gs:// names are missing: found none in the environment (GOOGLE_OAUTH_ACCESS_TOKEN, or "
      "GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY), in a gcloud key file, or in the metadata of this machine",
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
    throw io_error(std::string(who) + " returned an answer without a valid access token",
                   "Check the service account of this instance", {.stage = "remote"});
  return of_token(std::move(token), env_.now_seconds() + static_cast<std::int64_t>(lasts), who);
}

}}}   // namespace millrace::detail
