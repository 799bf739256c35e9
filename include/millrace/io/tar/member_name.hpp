// How the name of a tar member becomes a sample's key and a field: the rules of WebDataset.
//
//   auto name = mr::split_member_name("n01/0007.seg.PNG");    // .key "n01/0007", .field "seg.PNG", .kind sample
//
// The key is the folder and the basename up to its first dot; the field is the rest, whose letters A-Z readers lower.
// "foo." has the field "". What is no part of a sample is told apart so that it can be counted.
// Differs from the Python reference on purpose: "dir/.hidden" is a dot file, and no sample with the key "dir/".
#pragma once

#include <millrace/base/version.hpp>

#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI {

struct member_name {
  enum class kind_of_name {
    sample,        ///< key and field are set
    metadata,      ///< the first folder is __something__
    dot_file,      ///< the basename begins with a dot
    without_dot    ///< no field
  };

  kind_of_name kind = kind_of_name::sample;
  std::string_view key{};
  std::string_view field{};   ///< as written: letters not lowered
};

/// The views lie in `name`.
inline member_name split_member_name(std::string_view name) noexcept {
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

/// Whether a member called `name` is of a sample, and of another one than that with `key`.
inline bool begins_other_sample(std::string_view name, std::string_view key) noexcept {
  const member_name split = split_member_name(name);
  return split.kind == member_name::kind_of_name::sample && split.key != key;
}

}}  // namespace millrace
