// Signs requests with AWS Signature Version 4. Google Cloud Storage accepts this signature, too.
//
//   const mr::detail::signature_v4 sign{.credentials = keys, .region = "eu-west-1", .service = "s3"};
//   for (auto& header : sign.headers({.url = "https://bucket.s3.eu-west-1.amazonaws.com/a%20b.tar"}, now_seconds))
//     request.headers.push_back(std::move(header));
//
// Encode the path and the query of the URL with uri_encoded(). The URL is signed and sent unchanged. By default, bodies
// are not signed, because TLS protects them.
// Errors: io_error if libcrypto does not allow SHA-256. Messages contain no secrets. Threads: not synchronized.
// Source: "Signature Calculations for the Authorization Header" of the Amazon S3 API Reference.
#pragma once

#include <millrace/adapt/remote/store/small_http.hpp>
#include <millrace/base/error.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// SHA-256 and HMAC-SHA-256, computed by OpenSSL's libcrypto.
//
// Needs libcrypto (libssl-dev; link with -lcrypto). Errors: io_error if libcrypto does not allow SHA-256. Threads: pure
// functions; any thread.
// Source: FIPS 180-4, RFC 2104.

inline constexpr std::size_t sha256_bytes = 32;

/// Returns the 32 bytes of the digest.
std::string sha256(std::string_view text);
/// Returns the 32 bytes of the authentication code.
std::string hmac_sha256(std::string_view key, std::string_view text);
/// Returns two lowercase hexadecimal digits for each byte.
std::string signature_hex(std::string_view bytes);

/// Access keys for signatures. Access keys that expire have a session token.
struct signing_keys {
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  std::string access_key_id{}, secret_access_key{}, session_token{};
  std::int64_t expires_seconds = never;   ///< seconds since 1970
  /// The result of remote_options::current_headers. Requests to web servers send these headers instead of a signature.
  header_list headers{};

  friend bool operator==(const signing_keys&, const signing_keys&) = default;
};

/// A URL, split into the parts of a request.
struct url_parts {
  std::string_view scheme{}, host{}, path{}, query{};   ///< the host includes its port; the path begins with a slash

  explicit url_parts(std::string_view url);
  /// Returns the value of the Host header. If the port is the default of the scheme, the value omits the port.
  std::string_view host_header() const noexcept;
};

/// The parts of a request that are signed.
struct signable_request {
  std::string_view method = "GET", url{};
  header_list headers{};   ///< additional headers to sign
};

/// Signs requests for a region and a service.
struct signature_v4 {
  static constexpr std::string_view unsigned_payload = "UNSIGNED-PAYLOAD";

  signing_keys credentials{};
  std::string region{}, service = "s3";
  /// The SHA-256 of the body in hexadecimal digits, or `unsigned_payload` if the body is not signed.
  std::string payload_hash{unsigned_payload};
  bool sends_payload_hash = true;   ///< whether the hash is also sent in a header; only S3 requires this header

  /// Returns the headers that the signature adds to the request. `now_seconds`: time in seconds since 1970.
  header_list headers(const signable_request& request, std::int64_t now_seconds) const;
  /// Returns the text whose digest is signed. Stores the names of the signed headers in `names`.
  std::string canonical_request(const signable_request& request, header_list headers, std::string& names) const;

 private:
  /// Returns the query in canonical order: parameters are sorted bytewise by name; parameters with the same name are
  /// sorted by value. A name without a value gets an equals sign.
  static std::string sorted_query(std::string_view query);
  static std::string single_spaced(std::string_view value);
  std::string key_of(std::string_view day) const;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/store/impl/signature_v4.inl>
#endif
