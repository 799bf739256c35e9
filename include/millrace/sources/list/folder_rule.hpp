// The rule that selects the files of a folder that a source reads.
//
//   inline constexpr folder_rule shard_folder_rule{is_shard_name, "Shards end in .tar, ..."};
//
// Threads: a value.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Selects files of a folder.
struct folder_rule {
  bool (*accepts)(std::string_view name) noexcept;
  const char* hint;   ///< advice to the user about the accepted extensions
  bool ignore_missing = false;   ///< a missing file, or a glob without matches, is not an error
  std::size_t unreadable_at_most = 0;   ///< number of files that may be unreadable or missing
  /// Whether a folder means all files below it. Globs then match files only.
  bool recursive = false;
};

}}}  // namespace millrace::detail
