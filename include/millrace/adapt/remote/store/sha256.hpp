// SHA-256 and HMAC-SHA-256, computed by OpenSSL's libcrypto.
//
//   const auto key = mr::detail::hmac_sha256("secret", "20130524");
//   mr::detail::hex_text(mr::detail::sha256("body"));     // 64 hexadecimal digits in lower case
//
// Needs libcrypto (libssl-dev; link with -lcrypto). Errors: io_error if libcrypto does not allow SHA-256. Threads: pure
// functions; any thread.
// Source: FIPS 180-4, RFC 2104.
#pragma once

#include <millrace/base/error.hpp>

#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

inline constexpr std::size_t sha256_bytes = 32;

/// Returns the 32 bytes of the digest.
std::string sha256(std::string_view text);
/// Returns the 32 bytes of the authentication code.
std::string hmac_sha256(std::string_view key, std::string_view text);
/// Returns two lowercase hexadecimal digits for each byte.
std::string hex_text(std::string_view bytes);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/store/impl/sha256.inl>
#endif
