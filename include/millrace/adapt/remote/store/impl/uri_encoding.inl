// Defines what uri_encoding.hpp declares.
#pragma once

#include <millrace/adapt/remote/store/uri_encoding.hpp>

#include <cstddef>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::string uri_encoded(std::string_view text, slash what) {
  constexpr const char* digits = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '.' || c == '_' || c == '~' || (c == '/' && what == slash::kept);
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

MILLRACE_INLINE std::optional<std::string> uri_decoded(std::string_view encoded, plus what) {
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

}}}  // namespace millrace::detail
