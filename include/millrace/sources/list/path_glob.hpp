// Lists folders recursively, and matches globs.
//
//   mr::detail::deep_matches("photos/**/*.jpg", o);                 // all files below photos/ that match, sorted
//   mr::detail::path_matches("a/**/*.jpg", "a/b/c/1.jpg");          // true; reads no folder
//   mr::detail::fixed_folder("photos/**/*.jpg");                    // "photos/"
//
// A component "**" matches zero or more folders. If "**" is the last component, it matches all files in the folder and
// its subfolders. Only a component that begins with a dot matches a name that begins with a dot. Components other than
// "**" follow the rules of fnmatch(). Links to folders are followed. A link to a folder that contains the link is
// ignored.
// Errors: io_error for a folder that cannot be read. Threads: any thread; no shared state. Cost: reads each folder
// once.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The rule by which a source selects files in a folder.
struct listed_folder_rule {
  bool (*accepts)(std::string_view name) noexcept;
  const char* hint;                     ///< advice to the user about the accepted extensions
  bool ignore_missing = false;          ///< a missing file, or a glob without matches, is not an error
  std::size_t unreadable_at_most = 0;   ///< maximum number of unreadable or missing files
  /// If true, the subfolders of a folder are searched, too, and globs match files only.
  bool recursive = false;
};

/// Returns whether a component of the pattern is "**".
bool has_deep_glob(std::string_view pattern) noexcept;

/// Returns the part of a pattern before its first glob character, up to and including the last slash. Returns "" if
/// this part has no slash.
std::string_view fixed_folder(std::string_view pattern) noexcept;

/// Returns whether a path matches a pattern, component by component.
bool path_matches(std::string_view pattern, std::string_view path);

/// Returns the sorted files of a folder and its subfolders, without files whose names `rule` rejects. Throws io_error
/// if a folder cannot be read.
std::vector<std::string> files_below_pattern(const std::string& folder, const listed_folder_rule& rule);

/// Returns the sorted files that match a pattern with "**". If "**" is the last component, returns only files whose
/// names `rule` accepts. Throws io_error if a folder cannot be read.
std::vector<std::string> deep_matches(const std::string& pattern, const listed_folder_rule& rule);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/sources/list/impl/path_glob.inl>
#endif
