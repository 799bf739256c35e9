// The rule that says which files of a folder a source reads.
//
//   inline constexpr folder_rule shards_of_a_folder{names_a_shard, "Shards end in .tar, ..."};
//
// Threads: a value.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Selects files of a folder.
struct folder_rule {
  bool (*takes)(std::string_view name) noexcept;
  const char* sentence;   ///< tells the user which endings are taken
  bool leaves_out_missing = false;   ///< a file that is not there, or a glob that nothing matches, is no error
  std::size_t unreadable_at_most = 0;   ///< files that may be unreadable or missing
  /// Whether a folder stands for all files below it. Globs then match files only.
  bool with_subfolders = false;
};

}}}  // namespace millrace::detail
