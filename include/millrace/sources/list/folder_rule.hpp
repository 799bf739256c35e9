// The rule that selects the files of a folder that a source reads.
//
//   inline constexpr folder_rule shard_folder_rule{is_shard_name, "Shards end in .tar, ..."};
//
// Threads: not synchronized.
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
  std::size_t unreadable_at_most = 0;   ///< maximum number of unreadable or missing files
  /// If true, a folder selects all files below it, and globs match only files.
  bool recursive = false;
};

}}}  // namespace millrace::detail
