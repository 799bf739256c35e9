// Signs requests with Amazon's Signature Version 4, which Google's storage takes as well.
//
//   const mr::detail::signature_v4 sign{.credentials = keys, .region = "eu-west-1", .service = "s3"};
//   for (auto& header : sign.headers({.url = "https://bucket.s3.eu-west-1.amazonaws.com/a%20b.tar"}, now_seconds))
//     request.headers.push_back(std::move(header));
//
// The path and the query of the URL are sent as they stand, and are signed so: encode them by uri_encoded() first.
// Bodies are not signed: TLS guards them, and SHA-256 of what is read would cost more than all else.
// Errors: io_error if libcrypto refuses. Threads: a value. No message holds a secret.
// Source: "Signature Calculations for the Authorization Header" of the Amazon S3 API Reference.
#pragma once

#include <millrace/adapt/remote/store/small_http.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Keys that sign. The token belongs to keys that expire.
struct signing_keys {
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  std::string access_key_id{}, secret_access_key{}, session_token{};
  std::int64_t expires_seconds = never;   ///< since 1970
  header_list headers{};                  ///< of web servers, in the place of keys

  friend bool operator==(const signing_keys&, const signing_keys&) = default;
};

/// A URL in the parts that a request names apart.
struct url_parts {
  std::string_view scheme{}, host{}, path{}, query{};   ///< the host with its port; the path from its slash on

  explicit url_parts(std::string_view url);
  /// Returns the value of the header Host, which leaves out the scheme's own port.
  std::string_view host_header() const noexcept;
};

/// A request as it is signed.
struct signable_request {
  std::string_view method = "GET", url{};
  header_list headers{};   ///< those to be signed beside the signer's own
};

/// Signs by keys, for a region and a service.
struct signature_v4 {
  static constexpr std::string_view unsigned_payload = "UNSIGNED-PAYLOAD";

  signing_keys credentials{};
  std::string region{}, service = "s3";
  /// Stands for the body: its SHA-256 in digits, or that it is not signed.
  std::string payload_hash{unsigned_payload};
  bool sends_payload_hash = true;   ///< S3 wants it as a header; other services do not

  /// Returns the headers that a request at `now_seconds` has to be sent with beside its own.
  header_list headers(const signable_request& request, std::int64_t now_seconds) const;
  /// Returns the text whose digest is signed, and in `names` the names of the signed headers.
  std::string canonical_request(const signable_request& request, header_list headers, std::string& names) const;

 private:
  /// A name without a value gets an equals sign; names are compared before values, byte by byte.
  static std::string sorted_query(std::string_view query);
  static std::string single_spaced(std::string_view value);
  std::string key_of(std::string_view day) const;
};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/store/impl/signature_v4.inl>
#endif
