// Percent-encodes and decodes parts of a URL, as the signatures of Amazon S3 require.
//
//   mr::detail::uri_encoded("a b/c=1", mr::detail::slash::unchanged);     // "a%20b/c%3D1"
//   mr::detail::uri_decoded("a%20b+c");                              // "a b+c"
//
// All bytes except letters, digits and -._~ are encoded, with uppercase hexadecimal digits. Errors: none. If a text is
// not encoded correctly, uri_decoded() returns nothing. Threads: pure functions; any thread. Source: RFC 3986, section
// 2.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The treatment of slashes. Use `unchanged` for the key of an object, and `encoded` for a value in a query.
enum class slash : std::uint8_t { unchanged, encoded };

inline std::string uri_encoded(std::string_view text, slash what) {
  constexpr const char* digits = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '.' || c == '_' || c == '~' || (c == '/' && what == slash::unchanged);
    if (plain) {
      encoded += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded += '%';
    encoded += digits[byte >> 4];
    encoded += digits[byte & 15];
  }
  return encoded;
}

/// The meaning of a plus sign: itself in a path, but a blank in a form and in the names of an S3 listing.
enum class plus : std::uint8_t { itself, blank };

/// Returns the decoded text. If a percent sign is not followed by two hexadecimal digits, returns nothing.
inline std::optional<std::string> uri_decoded(std::string_view encoded, plus what = plus::itself) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  std::string text;
  text.reserve(encoded.size());
  for (std::size_t i = 0; i < encoded.size(); ++i) {
    if (encoded[i] == '+' && what == plus::blank) {
      text += ' ';
    } else if (encoded[i] != '%') {
      text += encoded[i];
    } else {
      if (encoded.size() - i < 3) return std::nullopt;
      const int high = digit(encoded[i + 1]), low = digit(encoded[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      text += static_cast<char>(high << 4 | low);
      i += 2;
    }
  }
  return text;
}

}}}   // namespace millrace::detail
