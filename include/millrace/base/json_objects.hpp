// Reads a JSON document, and passes the members of each object to a function.
//
//   using members = std::vector<mr::detail::json_objects::member>;
//   mr::detail::json_objects(text, "sizes.json").for_each([&](const members& of_object) {
//     for (const auto& m : of_object)
//       if (m.number) counts[m.key] = *m.number;
//   });
//
// The function receives the values of strings and non-negative integers. For a member with another value, the function
// receives only the key, and `is_null` for null. An inner object is passed before the object that contains it. Errors:
// data_error with path and offset if the text is not JSON or exceeds a limit. Limits: 64 levels of nesting, and a
// million members in all open objects together (objects whose end has not been read).
// Memory: the strings of the open objects. Threads: one thread at a time per object. Source: RFC 8259.
#pragma once

#include <millrace/base/version.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Reads JSON. At the end of each object, passes its members to the callable.
class json_objects {
 public:
  struct member {
    std::string key{};
    std::string text{};   // value, if it is a string
    std::optional<std::uint64_t> number{};
    bool is_string = false, is_null = false;
  };

  json_objects(std::string_view text, std::string_view path) : text_(text), path_(path) {}

  template <class Consume>
  MILLRACE_RARE void for_each(const Consume& consume) {
    value(consume, 0);
    skip_blanks();
    if (at_ < text_.size()) fail();
  }

 private:
  static constexpr int max_depth = 64;
  static constexpr std::size_t max_members = 1'000'000;   // a short member needs about 20 times the memory of its text

  [[noreturn]] void fail(const char* problem = "is not valid JSON here") const;
  void skip_blanks() noexcept { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  bool next_is(char c);

  template <class Consume>
  MILLRACE_RARE member value(const Consume& consume, int depth) {
    member m;
    if (depth > max_depth) fail("is nested deeper than 64 levels here");
    if (next_is('{')) {
      std::vector<member> members;
      if (!next_is('}')) {
        do {
          if (!next_is('"')) fail();
          std::string key = string_after_quote();
          if (!next_is(':')) fail();
          if (++members_ > max_members) fail("has more than 1,000,000 members in open objects here");
          members.push_back(value(consume, depth + 1));
          members.back().key = std::move(key);
        } while (next_is(','));
        if (!next_is('}')) fail();
      }
      consume(members);
      members_ -= members.size();
    } else if (next_is('[')) {
      if (next_is(']')) return m;
      do value(consume, depth + 1);
      while (next_is(','));
      if (!next_is(']')) fail();
    } else if (next_is('"')) {
      m.text = string_after_quote();
      m.is_string = true;
    } else {
      const std::size_t end = std::min(text_.find_first_of(",]} \t\r\n", at_), text_.size());
      const std::string_view word = text_.substr(at_, end - at_);
      std::uint64_t number = 0;
      const auto read = std::from_chars(word.data(), word.data() + word.size(), number);
      if (read.ec == std::errc() && read.ptr == word.data() + word.size()) m.number = number;
      else if (word == "null") m.is_null = true;
      else if (!is_other_word(word)) fail();
      at_ = end;
    }
    return m;
  }

  /// Returns whether a word is a valid value that is not passed to the callable, such as `true`, a negative number, or
  /// NaN.
  static bool is_other_word(std::string_view word) noexcept;
  std::string string_after_quote();

  /// Reads a \u escape, or two escapes that form a surrogate pair, and appends the character as UTF-8.
  void append_escape(std::string& out);
  /// Reads the four digits of a \u escape.
  std::uint32_t code_unit();

  std::string_view text_, path_;
  std::size_t at_ = 0;
  std::size_t members_ = 0;   // number of members in the open objects
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/base/impl/json_objects.inl>
#endif
