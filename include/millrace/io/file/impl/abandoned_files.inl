// Defines what abandoned_files.hpp declares.
#pragma once

#include <millrace/io/file/abandoned_files.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::string_view final_name_of(std::string_view temporary, std::string_view kernel) noexcept {
  constexpr std::string_view end = ".partial";
  if (kernel.empty() || !temporary.starts_with('.') || !temporary.ends_with(end)) return {};
  temporary.remove_prefix(1);
  temporary.remove_suffix(end.size());
  const std::size_t dot = temporary.rfind('.');
  if (dot == std::string_view::npos) return {};
  const std::string_view writer = temporary.substr(dot + 1);   // kernel-process-n
  const bool ours = writer.starts_with(kernel) && writer.substr(kernel.size()).starts_with('-');
  return ours ? temporary.substr(0, dot) : std::string_view{};
}

}}}  // namespace millrace::detail
