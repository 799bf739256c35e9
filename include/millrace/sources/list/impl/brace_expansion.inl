// Definitions for brace_expansion.hpp.
#pragma once

#include <millrace/sources/list/brace_expansion.hpp>

#include <algorithm>
#include <charconv>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE brace_expander::brace_expander(std::string_view pattern, std::size_t max_results)
    : pattern_(pattern), max_results_(max_results) {
  check_balance();
}

MILLRACE_RARE std::vector<std::string> brace_expander::expand(std::string_view text) const {
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

MILLRACE_RARE void brace_expander::check_balance() const {
  std::size_t depth = 0;
  for (std::size_t at = 0; at < pattern_.size(); ++at) {
    if (pattern_[at] == '\\') ++at;
    else if (pattern_[at] == '{' && ++depth > deepest_nesting) fail("braces nested more than 64 deep");
    else if (pattern_[at] == '}' && depth-- == 0) fail("a '}' without a '{' before it");
  }
  if (depth > 0) fail("a '{' without its '}'");
}

MILLRACE_RARE std::size_t brace_expander::closing_brace(std::string_view text, std::size_t open) noexcept {
  std::size_t depth = 0;
  for (std::size_t at = open;; ++at) {   // terminates, because check_balance() ensures that each brace has a partner
    if (text[at] == '\\') ++at;
    else if (text[at] == '{') ++depth;
    else if (text[at] == '}' && --depth == 0) return at;
  }
}

MILLRACE_RARE std::vector<std::string> brace_expander::choices_of(std::string_view group) const {
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

MILLRACE_RARE std::optional<std::vector<std::string>> brace_expander::range_of(std::string_view group) const {
  const std::size_t dots = group.find("..");
  if (dots == std::string_view::npos) return std::nullopt;
  const std::string_view first = group.substr(0, dots);
  std::string_view last = group.substr(dots + 2);
  std::string_view step_text = "1";
  if (const std::size_t more = last.find(".."); more != std::string_view::npos) {
    step_text = last.substr(more + 2);
    last = last.substr(0, more);
  }
  const bool numbers = is_integer(first) && is_integer(last);
  const std::size_t from = letters.find(first), to = letters.find(last);
  const bool one_letter_each = first.size() == 1 && last.size() == 1 && from != std::string_view::npos &&
                               to != std::string_view::npos;
  if (!is_integer(step_text) || (!numbers && !one_letter_each)) return std::nullopt;
  // Only ranges reach this line. In other groups, a number that exceeds 64 bits is not an error.
  const std::int64_t step = integer_of(step_text);
  const std::uint64_t stride = step == 0 ? 1 : magnitude(step);
  if (numbers) {
    const std::size_t width = is_padded(first) || is_padded(last) ? std::max(first.size(), last.size()) : 0;
    return range_values(integer_of(first), integer_of(last), stride,
                        [width](std::int64_t value) { return padded(value, width); });
  }
  return range_values(static_cast<std::int64_t>(from), static_cast<std::int64_t>(to), stride,
                      [](std::int64_t letter) { return std::string(1, letters[static_cast<std::size_t>(letter)]); });
}

MILLRACE_RARE void brace_expander::append_choices(std::vector<std::string>& results,
                                                  const std::vector<std::string>& choices) const {
  check_count(choices.size() > max_results_ / results.size() ? max_results_ + 1 : results.size() * choices.size());
  std::vector<std::string> product;
  product.reserve(results.size() * choices.size());
  for (const auto& result : results)
    for (const auto& choice : choices) product.push_back(result + choice);
  results = std::move(product);
}

MILLRACE_RARE bool brace_expander::is_integer(std::string_view text) noexcept {
  if (!text.empty() && text.front() == '-') text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

MILLRACE_RARE bool brace_expander::is_padded(std::string_view text) noexcept {
  if (text.front() == '-') text.remove_prefix(1);
  return text.size() > 1 && text.front() == '0';
}

MILLRACE_RARE std::int64_t brace_expander::integer_of(std::string_view text) const {
  std::int64_t value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc{})
    fail("the number " + printable(text) + ", which exceeds 64 bits");
  return value;
}

MILLRACE_RARE std::uint64_t brace_expander::magnitude(std::int64_t value) noexcept {
  return value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
}

MILLRACE_RARE std::string brace_expander::padded(std::int64_t value, std::size_t width) {
  std::string digits = std::to_string(magnitude(value));
  const std::string sign = value < 0 ? "-" : "";
  if (sign.size() + digits.size() < width) digits.insert(0, width - sign.size() - digits.size(), '0');
  return sign + digits;
}

MILLRACE_RARE void brace_expander::check_count(std::size_t results) const {
  if (results > max_results_) fail("braces that expand to more than " + std::to_string(max_results_) + " names");
}

MILLRACE_RARE void brace_expander::fail(const std::string& problem) const {
  throw setup_error("the pattern '" + printable(pattern_) + "' has " + problem,
                    "Write ranges as {000..146} and lists as {a,b}; put a backslash before a literal brace");
}

MILLRACE_RARE std::vector<std::string> expand_braces(std::string_view pattern, std::size_t max_results) {
  return brace_expander(pattern, max_results).expand(pattern);
}

}}}   // namespace millrace::detail
