// Definitions for notice.hpp.
#pragma once

#include <millrace/base/notice.hpp>

#include <unistd.h>

#include <cstdio>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE void print_notice(std::string_view text, std::string_view more) noexcept {
  const auto begin = [](std::string_view view) { return view.empty() ? "" : view.data(); };
  std::fprintf(stderr, "millrace: %.*s%.*s\n", static_cast<int>(text.size()), begin(text),
               static_cast<int>(more.size()), begin(more));
}

MILLRACE_INLINE bool prints_to_terminal() noexcept { return ::isatty(STDERR_FILENO) != 0; }

MILLRACE_INLINE void print_progress(std::string_view text, bool last) noexcept {
  std::fprintf(stderr, "\r\x1b[Kmillrace: %.*s%s", static_cast<int>(text.size()), text.data(), last ? "\n" : "");
}

}}}   // namespace millrace::detail
