// Defines what member_name.hpp declares.
#pragma once

#include <millrace/io/tar/format/member_name.hpp>

#include <cstddef>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE member_name split_member_name(std::string_view name) noexcept {
  using enum member_name::kind_of_name;
  const std::string_view first = name.substr(0, name.find('/'));
  if (first.size() >= 4 && first.starts_with("__") && first.ends_with("__")) return {.kind = metadata};
  const std::size_t slash = name.rfind('/');
  const std::size_t base = slash == std::string_view::npos ? 0 : slash + 1;
  if (name.substr(base).starts_with('.')) return {.kind = dot_file};
  const std::size_t dot = name.find('.', base);
  if (dot == std::string_view::npos) return {.kind = without_dot};
  return {.kind = sample, .key = name.substr(0, dot), .field = name.substr(dot + 1)};
}

MILLRACE_INLINE bool begins_other_sample(std::string_view name, std::string_view key) noexcept {
  const member_name split = split_member_name(name);
  return split.kind == member_name::kind_of_name::sample && split.key != key;
}

}}}  // namespace millrace::detail
