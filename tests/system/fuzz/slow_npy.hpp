// The header of a .npy file, read token by token: the reference of npy_fuzz.cpp and tokens_fuzz.cpp.
//
//   if (const auto header = slow::parse_npy_header("{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }"))
//     header->type == "<u2" && header->shape[0] == 3;
//
// As in the library, numbers may have leading zeros, and "(3)" is "(3,)".
#pragma once

#include <cctype>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace slow {

__extension__ using wide = unsigned __int128;

struct npy_header {
  std::string type{};
  bool fortran_order = false;
  std::vector<std::size_t> shape{};
};

/// A Python dictionary's tokens: punctuation, words, numbers, and strings with one quote in front.
inline std::optional<std::vector<std::string>> tokens_of(const std::string& text) {
  std::vector<std::string> tokens;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      ++at;
    } else if (c == '\'' || c == '"') {
      const std::size_t end = text.find(c, at + 1);
      if (end == std::string::npos) return std::nullopt;
      tokens.push_back("'" + text.substr(at + 1, end - at - 1));
      at = end + 1;
    } else if (c >= '0' && c <= '9') {
      std::size_t end = at;
      while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
      tokens.push_back(text.substr(at, end - at));
      at = end;
    } else if (text.compare(at, 4, "True") == 0 || text.compare(at, 5, "False") == 0) {
      tokens.push_back(c == 'T' ? "True" : "False");
      at += tokens.back().size();
    } else {
      tokens.emplace_back(1, c);
      ++at;
    }
  }
  return tokens;
}

inline std::optional<std::vector<std::size_t>> shape_of(const std::vector<std::string>& tokens, std::size_t& at) {
  std::vector<std::size_t> shape;
  if (tokens[at++] != "(") return std::nullopt;
  for (;;) {
    if (tokens[at] == ")") return ++at, shape;
    wide extent = 0;
    if (std::isdigit(static_cast<unsigned char>(tokens[at][0])) == 0) return std::nullopt;
    for (const char c : tokens[at++])
      if ((extent = 10 * extent + static_cast<unsigned>(c - '0')) > ~std::size_t{0}) return std::nullopt;
    shape.push_back(static_cast<std::size_t>(extent));
    if (tokens[at] == ",") ++at;
    else if (tokens[at] != ")") return std::nullopt;
  }
}

/// Nothing if the text is not such a dictionary.
inline std::optional<npy_header> parse_npy_header(const std::string& text) {
  auto tokens = tokens_of(text);
  if (!tokens) return std::nullopt;
  for (int i = 0; i < 8; ++i) tokens->emplace_back("end");
  npy_header h;
  std::map<std::string, int> seen_keys;
  std::size_t at = 0;
  const std::vector<std::string>& t = *tokens;
  if (t[at++] != "{") return std::nullopt;
  while (t[at] != "}") {
    const std::string key = t[at];
    if (t[at + 1] != ":" || seen_keys[key]++ > 0) return std::nullopt;
    at += 2;
    if (key == "'descr") {
      if (t[at][0] != '\'') return std::nullopt;
      h.type = t[at++].substr(1);
    } else if (key == "'fortran_order") {
      h.fortran_order = t[at] == "True";
      if (t[at] != "True" && t[at] != "False") return std::nullopt;
      ++at;
    } else if (key == "'shape") {
      const auto shape = shape_of(t, at);
      if (!shape) return std::nullopt;
      h.shape = *shape;
    } else {
      return std::nullopt;
    }
    if (t[at] == ",") ++at;
    else if (t[at] != "}") return std::nullopt;
  }
  if (at + 1 + 8 != t.size() || seen_keys.size() != 3) return std::nullopt;
  return h;
}

}  // namespace slow
