// Defines what last_line.hpp declares.
#pragma once

#include <millrace/io/file/last_line.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE void repair_last_line(append_file& file) {
  const std::uint64_t size = file.size_bytes();
  std::string tail;
  while (tail.size() < size && tail.find('\n') == std::string::npos) {
    const std::uint64_t more = std::min<std::uint64_t>(65'536, size - tail.size());
    tail.insert(0, file.read(size - tail.size() - more, more));
  }
  tail.erase(0, tail.rfind('\n') + 1);   // npos + 1 is 0
  if (tail.empty()) return;
  if (is_whole_json_object(tail)) file.append("\n");
  else file.cut(size - tail.size());
}

}}}  // namespace millrace::detail
