// Splits the name of a tar member into a sample's key and a field, by the rules of WebDataset.
//
//   auto name = mr::detail::split_member_name("n01/0007.seg.PNG");   // .key "n01/0007", .field "seg.PNG", .kind sample
//
// The key is the folder and the basename up to its first dot. The field is the rest after the dot. Readers convert the
// letters A-Z of a field to lower case. The field of "foo." is "". A name that does not belong to a sample has a kind
// other than `sample`. Readers count these names by kind. Unlike in the Python package webdataset, "dir/.hidden" is a
// dot file, not a sample with the key "dir/".
// Errors: none. Threads: pure functions; any thread.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The parts of a member name. Key and field are set only for the kind `sample`.
struct member_name {
  enum class kind_of_name {
    sample,       ///< key and field are set
    metadata,     ///< the first folder is named __something__
    dot_file,     ///< the basename begins with a dot
    without_dot   ///< the basename has no dot
  };

  kind_of_name kind = kind_of_name::sample;
  std::string_view key{};
  std::string_view field{};   ///< as written in the shard, not converted to lower case
};

/// Returns the parts of `name`. The views point into `name`.
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

/// Returns whether `name` belongs to a sample whose key is not `key`.
inline bool begins_other_sample(std::string_view name, std::string_view key) noexcept {
  const member_name split = split_member_name(name);
  return split.kind == member_name::kind_of_name::sample && split.key != key;
}

}}}   // namespace millrace::detail
