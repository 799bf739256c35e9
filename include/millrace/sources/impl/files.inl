// Definitions for files.hpp.
#pragma once

#include <millrace/sources/files.hpp>

#include <millrace/base/error.hpp>
#include <millrace/base/text.hpp>
#include <millrace/sources/list/brace_expansion.hpp>
#include <millrace/sources/list/path_glob.hpp>
#include <millrace/sources/list/shard_list.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE bool is_shown_file(std::string_view name) noexcept { return !name.starts_with('.'); }

/// Shortens `folder` to the folder that it has in common with `other`. Both end with a slash, or are empty.
MILLRACE_INLINE void keep_common(std::string& folder, std::string_view other) {
  const auto differs = std::mismatch(folder.begin(), folder.end(), other.begin(), other.end()).first;
  folder.erase(differs, folder.end());
  folder.erase(folder.rfind('/') + 1);   // without a slash, npos + 1 is 0
}

/// Returns the folder with which all paths of a pattern begin, before any glob of the pattern.
MILLRACE_INLINE std::string fixed_part(std::string_view pattern, const storage& at) {
  std::string common;
  bool first = true;
  for (std::size_t begin = 0; begin <= pattern.size();) {
    const std::size_t end = std::min(pattern.find("::", begin), pattern.size());
    for (const std::string& expanded : expand_braces(pattern.substr(begin, end - begin))) {
      std::string path(at.is_local() ? local_path(expanded) : std::string_view(expanded));
      const bool is_literal = at.is_local() && exists(path);
      if (is_literal && is_folder(path) && !path.ends_with('/')) path += '/';
      const std::string_view folder = is_literal ? std::string_view(path).substr(0, path.rfind('/') + 1)
                                                 : fixed_folder(path);
      if (std::exchange(first, false)) common = folder;
      else keep_common(common, folder);
    }
    begin = end + 2;
  }
  return common;
}

/// Sets the length of the root, and removes the files for which `where` returns false.
MILLRACE_INLINE named_files with_root(std::vector<std::string> paths, std::string root, const files_options& o) {
  if (!o.root.empty()) root = o.root.ends_with('/') ? o.root : o.root + "/";
  for (const std::string& path : paths)
    if (!path.starts_with(root))
      throw setup_error("the file '" + printable(path) +
                            "' is outside files_options::root: expected a path that "
                            "begins with '" +
                            printable(root) + "'",
                        "Write the root as it appears in the names");
  return {.paths = std::move(paths), .root_bytes = root.size()};
}

MILLRACE_INLINE named_files find_files(std::string_view pattern, const files_options& o) {
  const folder_rule rule{.accepts = is_shown_file,
                         .hint = "Check the folder. Names that begin with a dot are skipped",
                         .unreadable_at_most = std::numeric_limits<std::size_t>::max(),
                         .recursive = true};
  std::vector<std::string> paths = list_files(pattern, {.rule = rule, .at = o.storage});
  return with_root(std::move(paths), fixed_part(pattern, o.storage), o);
}

MILLRACE_INLINE named_files find_files(std::vector<std::string> names, const files_options& o) {
  if (names.empty()) throw setup_error("the list of files is empty", "Name at least one file");
  if (o.storage.is_local())
    for (std::string& name : names)
      if (!exists(name)) name = std::string(local_path(name));
  return with_root(std::move(names), {}, o);
}

MILLRACE_INLINE std::vector<std::string> classes_of(const named_files& files) {
  std::vector<std::string> all;
  for (const std::string& path : files.paths) {
    const std::string_view key = std::string_view(path).substr(files.root_bytes);
    const std::string_view folder = key.substr(0, std::min(key.find('/'), key.size()));
    if (folder.size() < key.size() && (all.empty() || all.back() != folder)) all.emplace_back(folder);
  }
  detail::sort_names(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

MILLRACE_INLINE files_source::files_source(named_files files, const files_options& o) {
  file_data_options data{.root_bytes = files.root_bytes,
                         .classes = o.classes,
                         .max_file_bytes = o.max_file_bytes,
                         .unreadable_at_most = o.unreadable_at_most,
                         .storage = o.storage};
  if (o.folders_are_classes && data.classes.empty()) {
    // Before `where` removes files, so that all parts of a set have the same class numbers.
    data.classes = classes_of(files);
    if (data.classes.empty())
      throw setup_error("the files have no classes: no key has a folder, for example '" +
                            printable(std::string_view(files.paths.front()).substr(files.root_bytes)) + "'",
                        "Use a pattern whose first glob matches the class folders, or set files_options::root");
  }
  if (o.where) {
    const std::size_t before = files.paths.size();
    std::erase_if(files.paths,
                  [&](const std::string& path) { return !o.where(std::string_view(path).substr(files.root_bytes)); });
    if (files.paths.empty())
      throw setup_error("no file is selected: files_options::where rejects all " + std::to_string(before),
                        "Check the callable. A key is the path from the first part with a wildcard, as in cat/1.jpg");
  }
  data_ = std::make_shared<file_data>(std::move(files.paths), std::move(data));
}

#ifdef MILLRACE_COMPILED
template class indexed_source<file_data, exact_order>;
template class indexed_run<file_data>;
template class reorder_buffer<indexed_source<file_data, exact_order>>;
template class read_stage_base<indexed_source<file_data, exact_order>>;
template class shard_read_stage<indexed_source<file_data, exact_order>>;
#endif

}}}   // namespace millrace::detail
