// Opens a text file with the C library. The file is closed at the end of the scope, even if an exception is thrown.
//
//   if (const auto file = mr::detail::open_text("/proc/self/cgroup"))
//     while (std::fgets(line, sizeof line, file.get())) use(line);
//
// Errors: none; the result is null if the file cannot be opened. Threads: not synchronized.
#pragma once

#include <millrace/base/version.hpp>

#include <cstdio>
#include <memory>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Closes a file.
struct text_file_closer {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};

/// Opens a file for reading. Returns null if the file cannot be opened.
inline std::unique_ptr<std::FILE, text_file_closer> open_text(const char* path) noexcept {
  return std::unique_ptr<std::FILE, text_file_closer>(std::fopen(path, "re"));
}

}}}   // namespace millrace::detail
