// A simple reader of JSON (RFC 8259), the reference for the library's readers.
//
//   slow::json_reader reader(text);
//   std::optional<slow::json_value> value = reader.document();      // nothing if the text is not JSON
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace slow {

struct json_value {
  enum class kind { word, string, array, object };

  kind what = kind::word;
  std::string text{};                  // a word or a number unchanged; the content of a string
  std::vector<std::string> keys{};     // of an object, one for each of its members
  std::vector<json_value> members{};   // of an object or an array
};

class json_reader {
 public:
  struct rules {
    bool any_word = false;        ///< a word of digits, signs, dots and e need not be a number
    bool any_character = false;   ///< strings may contain control characters
    bool join_surrogates = false; ///< two of them are one character, and one alone is an error
    bool lone_surrogates = false; ///< ... and one alone represents itself
    int deepest = 64;
  };

  explicit json_reader(std::string_view text) : json_reader(text, rules()) {}
  json_reader(std::string_view text, rules r) : text_(text), rules_(r) {}

  std::optional<json_value> document() {
    json_value v;
    if (!value(v, 0)) return std::nullopt;
    blanks();
    if (at_ != text_.size()) return std::nullopt;
    return v;
  }

 private:
  char now() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool ended() const { return at_ >= text_.size(); }
  void blanks() {
    while (!ended() && (now() == ' ' || now() == '\t' || now() == '\r' || now() == '\n')) ++at_;
  }

  bool take(char c) {
    blanks();
    if (ended() || now() != c) return false;
    ++at_;
    return true;
  }

  bool value(json_value& v, int depth) {
    if (depth > rules_.deepest) return false;
    blanks();
    if (ended()) return false;
    if (take('{')) return list(v, depth, '}', true);
    if (take('[')) return list(v, depth, ']', false);
    if (now() == '"') {
      v.what = json_value::kind::string;
      return string(v.text);
    }
    return word(v);
  }

  bool list(json_value& v, int depth, char end, bool keys) {
    v.what = keys ? json_value::kind::object : json_value::kind::array;
    if (take(end)) return true;
    for (;;) {
      if (keys) {
        blanks();
        v.keys.emplace_back();
        if (now() != '"' || !string(v.keys.back()) || !take(':')) return false;
      }
      v.members.emplace_back();
      if (!value(v.members.back(), depth + 1)) return false;
      if (take(end)) return true;
      if (!take(',')) return false;
    }
  }

  bool word(json_value& v) {
    while (!ended() && std::string_view(",]} \t\r\n").find(now()) == std::string_view::npos) v.text += text_[at_++];
    if (v.text == "true" || v.text == "false" || v.text == "null") return true;
    if (v.text == "NaN" || v.text == "Infinity" || v.text == "-Infinity") return true;   // as json.dumps() writes them
    if (rules_.any_word) return !v.text.empty() && v.text.find_first_not_of("0123456789+-.eE") == std::string::npos;
    std::size_t i = 0;
    const auto digits = [&] {
      const std::size_t from = i;
      while (i < v.text.size() && v.text[i] >= '0' && v.text[i] <= '9') ++i;
      return i - from;
    };
    if (v.text.starts_with('-')) ++i;
    const std::size_t first = i, integer_digits = digits();
    if (integer_digits == 0 || (integer_digits > 1 && v.text[first] == '0')) return false;
    if (i < v.text.size() && v.text[i] == '.' && (++i, digits() == 0)) return false;
    if (i < v.text.size() && (v.text[i] == 'e' || v.text[i] == 'E')) {
      ++i;
      if (i < v.text.size() && (v.text[i] == '+' || v.text[i] == '-')) ++i;
      if (digits() == 0) return false;
    }
    return i == v.text.size();
  }

  bool string(std::string& out) {
    ++at_;
    for (; !ended() && now() != '"'; ++at_) {
      const char c = now();
      if (!rules_.any_character && static_cast<unsigned char>(c) < 0x20) return false;
      if (c != '\\') {
        out += c;
        continue;
      }
      ++at_;
      switch (now()) {
        case '"': out += '"'; break;
        case '\\': out += '\\'; break;
        case '/': out += '/'; break;
        case 'b': out += '\b'; break;
        case 'f': out += '\f'; break;
        case 'n': out += '\n'; break;
        case 'r': out += '\r'; break;
        case 't': out += '\t'; break;
        case 'u':
          if (!escape(out)) return false;
          break;
        default: return false;
      }
    }
    if (ended()) return false;
    ++at_;
    return true;
  }

  /// Reads the next four digits, and stops at the last of them.
  bool digits_of_unit(unsigned& unit) {
    unit = 0;
    for (int i = 0; i < 4; ++i) {
      ++at_;
      const char lower = now() >= 'A' && now() <= 'F' ? static_cast<char>(now() + 32) : now();
      const std::size_t digit = std::string_view("0123456789abcdef").find(lower);
      if (ended() || digit == std::string_view::npos) return false;
      unit = 16 * unit + static_cast<unsigned>(digit);
    }
    return true;
  }

  bool escape(std::string& out) {
    unsigned unit = 0, low = 0;
    if (!digits_of_unit(unit)) return false;
    if (!rules_.join_surrogates || unit < 0xd800 || unit > 0xdfff) return append(out, unit), true;
    const std::size_t end = at_;
    const bool two = unit < 0xdc00 && text_.substr(at_ + 1, 2) == "\\u";
    if (two) at_ += 2;
    if (two && !digits_of_unit(low)) return false;
    if (low < 0xdc00 || low > 0xdfff) {
      at_ = end;
      return rules_.lone_surrogates && (append(out, unit), true);
    }
    const unsigned code = 0x10000 + ((unit - 0xd800) << 10 | (low - 0xdc00));
    out += static_cast<char>(0xf0 + (code >> 18));
    for (const int shift : {12, 6, 0}) out += static_cast<char>(0x80 + (code >> shift & 63));
    return true;
  }

  static void append(std::string& out, unsigned unit) {
    const auto byte = [&](unsigned b) { out += static_cast<char>(b); };
    if (unit < 0x80) return byte(unit);
    if (unit < 0x800) return byte(0xc0 + unit / 64), byte(0x80 + unit % 64);
    byte(0xe0 + unit / 4096);
    byte(0x80 + unit / 64 % 64);
    byte(0x80 + unit % 64);
  }

  std::string_view text_;
  rules rules_;
  std::size_t at_ = 0;
};

}  // namespace slow
