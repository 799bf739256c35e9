// Repairs the end of a file of JSON lines after the writer of the file was killed.
//
//   mr::detail::append_file file({.path = "run.jsonl"});
//   mr::detail::repair_last_line(file);      // after the call, the file is empty or ends with a line end
//
// Removes an incomplete last line. If a complete last line only lacks its line end, adds the line end.
// Errors: io_error. Threads: not thread-safe. Memory: the size of the last line.
#pragma once

#include <millrace/io/file/append_file.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns true if `line` is a complete JSON object: it ends with the brace that closes the object.
constexpr bool is_complete_json_object(std::string_view line) noexcept {
  int depth = 0;
  bool in_string = false, escaped = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (escaped) escaped = false;
    else if (in_string && c == '\\') escaped = true;
    else if (c == '"') in_string = !in_string;
    else if (!in_string && c == '{') ++depth;
    else if (!in_string && c == '}' && --depth == 0) return i + 1 == line.size();
  }
  return false;
}

/// Repairs the last line, so that the file is empty or ends with a line end.
inline void repair_last_line(append_file& file) {
  const std::uint64_t size = file.size_bytes();
  std::string tail;
  while (tail.size() < size && tail.find('\n') == std::string::npos) {
    const std::uint64_t more = std::min<std::uint64_t>(65'536, size - tail.size());
    tail.insert(0, file.read(size - tail.size() - more, more));
  }
  tail.erase(0, tail.rfind('\n') + 1);   // without a line end: npos + 1 is 0
  if (tail.empty()) return;
  if (is_complete_json_object(tail)) file.append("\n");
  else file.cut(size - tail.size());
}

}}}   // namespace millrace::detail
