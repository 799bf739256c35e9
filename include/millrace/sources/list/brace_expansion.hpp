// Expands the braces in patterns of shard names, like the WebDataset tools.
//
//   mr::detail::expand_braces("train-{000..146}.tar");     // train-000.tar, train-001.tar, ... train-146.tar
//   mr::detail::expand_braces("{a,b}/{0..4..2}.tar");      // a/0.tar a/2.tar a/4.tar b/0.tar b/2.tar b/4.tar
//
// A group is a pair of braces with its content. Groups may be nested. The last group varies fastest. If the first or
// the last number of a range has a leading zero, all numbers are padded with zeros to the width of the longer of these
// two. A range may descend, and may have a step. The sign of the step is ignored, and a step of 0 counts as 1. A range
// may consist of letters, where 'a' follows 'Z'. A group without a comma and without a range, such as {}, is not
// changed. A backslash escapes the next character.
// Errors: setup_error for an unbalanced brace, for more than 64 nested braces, for a number that exceeds 64 bits, and
// for more than `max_results` results. Threads: pure functions; any thread.
// Source: braceexpand 0.1.7 for Python, with one difference: an unbalanced pattern such as "}a{" is an error.
#pragma once

#include <millrace/base/error.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

class brace_expander {
 public:
  brace_expander(std::string_view pattern, std::size_t max_results);

  std::vector<std::string> expand(std::string_view text) const;

 private:
  static constexpr std::size_t deepest_nesting = 64;
  static constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

  void check_balance() const;
  static std::size_t closing_brace(std::string_view text, std::size_t open) noexcept;
  std::vector<std::string> choices_of(std::string_view group) const;

  /// Returns the values of "first..last" or "first..last..step", or nothing if `group` has another form.
  std::optional<std::vector<std::string>> range_of(std::string_view group) const;

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

  void append_choices(std::vector<std::string>& results, const std::vector<std::string>& choices) const;
  static bool is_integer(std::string_view text) noexcept;
  static bool is_padded(std::string_view text) noexcept;
  std::int64_t integer_of(std::string_view text) const;
  static std::uint64_t magnitude(std::int64_t value) noexcept;
  static std::string padded(std::int64_t value, std::size_t width);
  void check_count(std::size_t results) const;
  [[noreturn]] void fail(const std::string& problem) const;

  std::string_view pattern_;
  std::size_t max_results_;
};

/// Returns all names of a pattern in order, at least one. Throws setup_error if a brace is unbalanced, or if the
/// pattern has more than `max_results` names.
std::vector<std::string> expand_braces(std::string_view pattern, std::size_t max_results = 1'000'000);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/sources/list/impl/brace_expansion.inl>
#endif
