// Requests whose responses fit into memory, such as requests for credentials and for lists of objects. A small_fetch is
// a function that sends these requests.
//
//   mr::detail::small_fetch fetch = ...;                       // tests use a function without a network
//   const auto answer = fetch({.url = "http://169.254.169.254/latest/meta-data/", .seconds = 1});
//   if (answer.status == 200) use(answer.body);
//
// Errors: a small_fetch throws io_error if no response arrives. A response is never an error, even if its status is 404
// or 500.
// Threads: not synchronized.
#pragma once

#include <millrace/base/version.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The names and values of headers, in the order in which they are sent or were received.
using header_list = std::vector<std::pair<std::string, std::string>>;

inline char http_lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

inline std::string http_lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = http_lower(c);
  return lower;
}

/// Returns the value of the first header with this name, regardless of case, or "" if no header has the name.
inline std::string_view header_value(const header_list& headers, std::string_view name) {
  const auto same = [](char a, char b) { return http_lower(a) == http_lower(b); };
  for (const auto& [other, value] : headers)
    if (std::equal(other.begin(), other.end(), name.begin(), name.end(), same)) return value;
  return {};
}

/// Returns the text without leading and trailing blanks, tabs and line ends.
inline std::string_view trimmed_http(std::string_view text) noexcept {
  constexpr std::string_view blanks = " \t\r\n";
  const std::size_t from = text.find_first_not_of(blanks);
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(blanks) + 1 - from);
}

/// A request whose body is in memory.
struct small_request {
  std::string method = "GET", url{};
  header_list headers{};
  std::string body{};
  double seconds = 10;   ///< timeout of each attempt (request and response together), in seconds
  int attempts = 3;      ///< maximum number of attempts if no response arrives
};

/// A response whose body is in memory.
struct small_answer {
  int status = 0;
  header_list headers{};
  std::string body{};
};

using small_fetch = std::function<small_answer(const small_request&)>;

}}}   // namespace millrace::detail
