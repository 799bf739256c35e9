// Expands the braces in shard patterns, as the WebDataset tools do.
//
//   mr::detail::expand_braces("train-{000..146}.tar");     // train-000.tar, train-001.tar, ... train-146.tar
//   mr::detail::expand_braces("{a,b}/{0..4..2}.tar");      // a/0.tar a/2.tar a/4.tar b/0.tar b/2.tar b/4.tar
//
// Groups nest; the last group varies fastest. A range is padded with zeros to the width of its longer end if either end
// has a leading zero. A range may descend and may have a step: the sign of the step is ignored, and 0 counts as 1.
// A range may run over letters, where 'a' follows 'Z'. A group with neither a comma nor a range stays as it is, and so
// does {}. A backslash makes the next character an ordinary one.
// Errors: setup_error for an unbalanced brace, for braces nested more than 64 deep, and for a number beyond 64
// bits. It is also thrown for more than `max_results` results. Threads: pure.
// Source: the behavior of braceexpand 0.1.7 for Python; unlike there, a '}' without a '{' before it is an error here.
#pragma once

#include <millrace/base/error.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

class brace_expander {
 public:
  brace_expander(std::string_view pattern, std::size_t max_results) : pattern_(pattern), max_results_(max_results) {
    check_balance();
  }

  std::vector<std::string> expand(std::string_view text) const {
    std::vector<std::string> results(1);
    for (std::size_t at = 0; at < text.size();) {
      if (text[at] == '{') {
        const std::size_t end = closing_brace(text, at);
        append_choices(results, choices_of(text.substr(at + 1, end - at - 1)));
        at = end + 1;
      } else {
        const bool escape = text[at] == '\\' && at + 1 < text.size();
        for (auto& result : results) result += text[at + escape];
        at += 1U + escape;
      }
    }
    return results;
  }

 private:
  static constexpr std::size_t deepest_nesting = 64;
  static constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

  void check_balance() const {
    std::size_t depth = 0;
    for (std::size_t at = 0; at < pattern_.size(); ++at) {
      if (pattern_[at] == '\\') ++at;
      else if (pattern_[at] == '{' && ++depth > deepest_nesting) fail("braces nested more than 64 deep");
      else if (pattern_[at] == '}' && depth-- == 0) fail("a '}' without a '{' before it");
    }
    if (depth > 0) fail("a '{' without its '}'");
  }

  static std::size_t closing_brace(std::string_view text, std::size_t open) noexcept {
    std::size_t depth = 0;
    for (std::size_t at = open;; ++at) {   // ends: check_balance() has found every partner
      if (text[at] == '\\') ++at;
      else if (text[at] == '{') ++depth;
      else if (text[at] == '}' && --depth == 0) return at;
    }
  }

  std::vector<std::string> choices_of(std::string_view group) const {
    std::vector<std::string> choices;
    std::size_t depth = 0, begin = 0;
    bool has_comma = false;
    const auto add_alternative = [&](std::size_t end) {
      auto expanded = expand(group.substr(begin, end - begin));
      check_count(choices.size() + expanded.size());
      for (auto& choice : expanded) choices.push_back(std::move(choice));
    };
    for (std::size_t at = 0; at < group.size(); ++at) {
      if (group[at] == '\\') ++at;
      else if (group[at] == '{') ++depth;
      else if (group[at] == '}') --depth;
      else if (group[at] == ',' && depth == 0) {
        has_comma = true;
        add_alternative(at);
        begin = at + 1;
      }
    }
    if (has_comma) {
      add_alternative(group.size());
      return choices;
    }
    if (auto range = range_of(group)) return *std::move(range);
    choices = expand(group);
    for (auto& choice : choices) choice = "{" + choice + "}";
    return choices;
  }

  /// Returns the values of "first..last" or "first..last..step"; nothing if `group` is something else.
  std::optional<std::vector<std::string>> range_of(std::string_view group) const {
    const std::size_t dots = group.find("..");
    if (dots == std::string_view::npos) return std::nullopt;
    const std::string_view first = group.substr(0, dots);
    std::string_view last = group.substr(dots + 2);
    std::string_view step_text = "1";
    if (const std::size_t more = last.find(".."); more != std::string_view::npos) {
      step_text = last.substr(more + 2);
      last = last.substr(0, more);
    }
    if (!is_integer(step_text)) return std::nullopt;
    const std::int64_t step = integer_of(step_text);
    const std::uint64_t stride = step == 0 ? 1 : magnitude(step);
    if (is_integer(first) && is_integer(last)) {
      const std::size_t width = is_padded(first) || is_padded(last) ? std::max(first.size(), last.size()) : 0;
      return range_values(integer_of(first), integer_of(last), stride,
                          [width](std::int64_t value) { return padded(value, width); });
    }
    if (first.size() != 1 || last.size() != 1) return std::nullopt;
    const std::size_t from = letters.find(first), to = letters.find(last);
    if (from == std::string_view::npos || to == std::string_view::npos) return std::nullopt;
    return range_values(static_cast<std::int64_t>(from), static_cast<std::int64_t>(to), stride,
                        [](std::int64_t letter) { return std::string(1, letters[static_cast<std::size_t>(letter)]); });
  }

  template <class Format>
  std::vector<std::string> range_values(std::int64_t first, std::int64_t last, std::uint64_t stride,
                                        Format format) const {
    const auto from = static_cast<std::uint64_t>(first), to = static_cast<std::uint64_t>(last);
    const std::uint64_t steps = (first <= last ? to - from : from - to) / stride;
    check_count(steps < max_results_ ? steps + 1 : max_results_ + 1);
    std::vector<std::string> values;
    values.reserve(static_cast<std::size_t>(steps + 1));
    for (std::uint64_t i = 0; i <= steps; ++i)
      values.push_back(format(static_cast<std::int64_t>(first <= last ? from + i * stride : from - i * stride)));
    return values;
  }

  void append_choices(std::vector<std::string>& results, const std::vector<std::string>& choices) const {
    check_count(choices.size() > max_results_ / results.size() ? max_results_ + 1 : results.size() * choices.size());
    std::vector<std::string> product;
    product.reserve(results.size() * choices.size());
    for (const auto& result : results)
      for (const auto& choice : choices) product.push_back(result + choice);
    results = std::move(product);
  }

  static bool is_integer(std::string_view text) noexcept {
    if (!text.empty() && text.front() == '-') text.remove_prefix(1);
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  }
  static bool is_padded(std::string_view text) noexcept {
    if (text.front() == '-') text.remove_prefix(1);
    return text.size() > 1 && text.front() == '0';
  }
  std::int64_t integer_of(std::string_view text) const {
    std::int64_t value = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc{})
      fail("the number " + printable(text) + ", which does not fit into 64 bits");
    return value;
  }
  static std::uint64_t magnitude(std::int64_t value) noexcept {
    return value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  }
  static std::string padded(std::int64_t value, std::size_t width) {
    std::string digits = std::to_string(magnitude(value));
    const std::string sign = value < 0 ? "-" : "";
    if (sign.size() + digits.size() < width) digits.insert(0, width - sign.size() - digits.size(), '0');
    return sign + digits;
  }

  void check_count(std::size_t results) const {
    if (results > max_results_) fail("braces that stand for more than " + std::to_string(max_results_) + " names");
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw setup_error("the pattern '" + printable(pattern_) + "' has " + what,
                      "Write ranges as {000..146} and lists as {a,b}; put a backslash before a brace that is meant "
                      "as a character");
  }

  std::string_view pattern_;
  std::size_t max_results_;
};

/// Returns all names that `pattern` stands for, in order; at least one. Throws setup_error if a brace is unbalanced or
/// if there would be more than `max_results` names.
inline std::vector<std::string> expand_braces(std::string_view pattern, std::size_t max_results = 1'000'000) {
  return detail::brace_expander(pattern, max_results).expand(pattern);
}

}}}  // namespace millrace::detail
