// Definitions for sha256.hpp.
#pragma once

#include <millrace/adapt/remote/store/sha256.hpp>

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

MILLRACE_INLINE std::string hex_text(std::string_view bytes) {
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

}}}   // namespace millrace::detail
