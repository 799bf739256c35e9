// Splits the name of a tar member into a sample's key and a field, by the rules of WebDataset.
//
//   auto name = mr::detail::split_member_name("n01/0007.seg.PNG");   // .key "n01/0007", .field "seg.PNG", .kind sample
//
// The key is the folder and the basename up to its first dot. The field is the rest; readers lower its letters A-Z.
// "foo." has the field "". Names that belong to no sample have kinds of their own, so that they can be counted.
// This differs from the Python reference on purpose: "dir/.hidden" is a dot file, not a sample with the key "dir/".
// Errors: none. Threads: any.
#pragma once

#include <millrace/base/version.hpp>

#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The parts of a member name; key and field are set only for the kind `sample`.
struct member_name {
  enum class kind_of_name {
    sample,        ///< key and field are set
    metadata,      ///< the first folder is called __something__
    dot_file,      ///< the basename begins with a dot
    without_dot    ///< no field
  };

  kind_of_name kind = kind_of_name::sample;
  std::string_view key{};
  std::string_view field{};   ///< as written in the shard, letters not lowered
};

/// Returns the parts of `name`; the views point into `name`.
member_name split_member_name(std::string_view name) noexcept;

/// Returns whether `name` belongs to a sample whose key is not `key`.
bool begins_other_sample(std::string_view name, std::string_view key) noexcept;

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/tar/format/impl/member_name.inl>
#endif
