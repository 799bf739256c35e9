// Searches for pieces in a report's text.
#pragma once

#include <string>
#include <string_view>

inline bool holds(const std::string& text, std::string_view piece) { return text.find(piece) != std::string::npos; }

inline std::size_t times_in(const std::string& text, std::string_view piece) {
  std::size_t n = 0;
  for (std::size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1)) ++n;
  return n;
}
