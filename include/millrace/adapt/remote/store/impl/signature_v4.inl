// Definitions for signature_v4.hpp.
#pragma once

#include <millrace/adapt/remote/store/signature_v4.hpp>

#include <millrace/adapt/remote/store/utc_time.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#if !__has_include(<openssl/evp.h>)
#error "millrace: OpenSSL is not installed: apt-get install libssl-dev"
#endif
#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

[[noreturn]] MILLRACE_INLINE void fail_digest() {
  throw io_error("libcrypto cannot compute SHA-256", "Check that this system's OpenSSL allows SHA-256",
                 {.stage = "remote"});
}

MILLRACE_INLINE std::string sha256(std::string_view text) {
  std::string digest(sha256_bytes, '\0');
  unsigned size = 0;
  if (EVP_Digest(text.data(), text.size(), reinterpret_cast<unsigned char*>(digest.data()), &size, EVP_sha256(),
                 nullptr) != 1 ||
      size != sha256_bytes)
    fail_digest();
  return digest;
}

MILLRACE_INLINE std::string hmac_sha256(std::string_view key, std::string_view text) {
  std::string code(sha256_bytes, '\0');
  unsigned size = 0;
  // An empty key also needs an address. With a null pointer, libcrypto would reuse the key of its last call.
  if (HMAC(EVP_sha256(), key.empty() ? "" : key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(),
           reinterpret_cast<unsigned char*>(code.data()), &size) == nullptr ||
      size != sha256_bytes)
    fail_digest();
  return code;
}

MILLRACE_INLINE std::string signature_hex(std::string_view bytes) {
  constexpr const char* digits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

MILLRACE_INLINE url_parts::url_parts(std::string_view url) {
  if (const std::size_t colon = url.find("://"); colon != std::string_view::npos) {
    scheme = url.substr(0, colon);
    url.remove_prefix(colon + 3);
  }
  url = url.substr(0, url.find('#'));
  if (const std::size_t mark = url.find('?'); mark != std::string_view::npos) {
    query = url.substr(mark + 1);
    url = url.substr(0, mark);
  }
  const std::size_t slash = std::min(url.find('/'), url.size());
  host = url.substr(0, slash);
  path = slash < url.size() ? url.substr(slash) : std::string_view("/");
}

MILLRACE_INLINE std::string_view url_parts::host_header() const noexcept {
  const std::string_view usual = scheme == "https" ? ":443" : ":80";
  return host.ends_with(usual) ? host.substr(0, host.size() - usual.size()) : host;
}

MILLRACE_INLINE header_list signature_v4::headers(const signable_request& request, std::int64_t now_seconds) const {
  const std::string time = basic_utc(now_seconds);
  header_list added;
  if (sends_payload_hash) added.emplace_back("x-amz-content-sha256", payload_hash);
  added.emplace_back("x-amz-date", time);
  if (!credentials.session_token.empty()) added.emplace_back("x-amz-security-token", credentials.session_token);
  header_list all = request.headers;
  all.emplace_back("host", url_parts(request.url).host_header());
  all.insert(all.end(), added.begin(), added.end());
  std::string names;
  const std::string canonical = canonical_request(request, std::move(all), names);
  const std::string scope = time.substr(0, 8) + '/' + region + '/' + service + "/aws4_request";
  const std::string to_sign = "AWS4-HMAC-SHA256\n" + time + '\n' + scope + '\n' + signature_hex(sha256(canonical));
  added.emplace_back("Authorization", "AWS4-HMAC-SHA256 Credential=" + credentials.access_key_id + '/' + scope +
                                          ", SignedHeaders=" + names + ", Signature=" +
                                          signature_hex(hmac_sha256(key_of(time.substr(0, 8)), to_sign)));
  return added;
}

MILLRACE_INLINE std::string signature_v4::canonical_request(const signable_request& request, header_list headers,
                                                            std::string& names) const {
  const url_parts url(request.url);
  std::string text = std::string(request.method) + '\n' + std::string(url.path) + '\n' + sorted_query(url.query);
  text += '\n';
  for (auto& [name, value] : headers) {
    name = http_lower(name);
    value = single_spaced(value);
  }
  // Headers with the same name keep their order.
  std::stable_sort(headers.begin(), headers.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  names.clear();
  for (std::size_t i = 0; i < headers.size(); ++i) {
    const auto& [name, value] = headers[i];
    if (i > 0 && headers[i - 1].first == name) {
      text.back() = ',';
    } else {
      names += (names.empty() ? "" : ";") + name;
      text += name + ':';
    }
    text += value + '\n';
  }
  return text + '\n' + names + '\n' + payload_hash;
}

MILLRACE_INLINE std::string signature_v4::sorted_query(std::string_view query) {
  std::vector<std::pair<std::string_view, std::string_view>> pairs;
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    const std::size_t equals = std::min(pair.find('='), pair.size());
    if (!pair.empty())
      pairs.emplace_back(pair.substr(0, equals), equals < pair.size() ? pair.substr(equals + 1) : std::string_view());
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  std::sort(pairs.begin(), pairs.end());
  std::string text;
  for (const auto& [name, value] : pairs) text.append(text.empty() ? "" : "&").append(name).append("=").append(value);
  return text;
}

MILLRACE_INLINE std::string signature_v4::single_spaced(std::string_view value) {
  std::string text;
  for (const char c : trimmed_http(value)) {
    const bool blank = c == ' ' || c == '\t' || c == '\r' || c == '\n';
    if (!blank) text += c;
    else if (text.back() != ' ') text += ' ';
  }
  return text;
}

MILLRACE_INLINE std::string signature_v4::key_of(std::string_view day) const {
  return hmac_sha256(
      hmac_sha256(hmac_sha256(hmac_sha256("AWS4" + credentials.secret_access_key, day), region), service),
      "aws4_request");
}

}}}   // namespace millrace::detail
