// Globs in which "**" matches any number of folders, and recursive listing of folders.
//
//   mr::detail::deep_matches("photos/**/*.jpg", o);                 // the sorted files of all folders below photos/
//   mr::detail::path_matches("a/**/*.jpg", "a/b/c/1.jpg");          // true; for the names of a storage
//   mr::detail::fixed_folder("photos/**/*.jpg");                    // "photos/"
//
// A component "**" matches zero or more folders. As the last component it matches all files below. Neither "**" nor "*"
// matches a name that begins with a dot. Only a component that itself begins with a dot matches such a name. Other
// components follow fnmatch(). Links to folders are followed; a link to one of its parent folders is ignored.
// Errors: io_error for a folder that cannot be read. Threads: any thread; no shared state. Cost: reads each folder
// once.
#pragma once

#include <millrace/sources/list/folder_rule.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns whether a component of the pattern is "**".
bool has_deep_glob(std::string_view pattern) noexcept;

/// Returns the folder at the start of a pattern, up to the slash before its first glob; empty if no folder precedes it.
std::string_view fixed_folder(std::string_view pattern) noexcept;

/// Returns whether a path matches a pattern, component by component.
bool path_matches(std::string_view pattern, std::string_view path);

/// Returns the sorted files in and below a folder that `rule` accepts. Throws io_error if a folder cannot be read.
std::vector<std::string> files_below(const std::string& folder, const folder_rule& rule);

/// Returns the sorted files that a pattern with "**" matches. If "**" is the last component, these are the files that
/// `rule` accepts. Throws io_error if a folder cannot be read.
std::vector<std::string> deep_matches(const std::string& pattern, const folder_rule& rule);

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/sources/list/impl/path_glob.inl>
#endif
