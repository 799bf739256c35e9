// Definitions for google_key_file.hpp.
#pragma once

#include <millrace/adapt/remote/store/google_key_file.hpp>

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
    throw io_error(who + " is not valid JSON", "Create it again with `gcloud auth application-default login`",
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
    throw setup_error("the token_uri of " + printable(path) + " is wrong: expected https://",
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

}}}   // namespace millrace::detail
