// Definitions for shard_list.hpp.
#pragma once

#include <millrace/sources/list/shard_list.hpp>

#include <millrace/base/error.hpp>
#include <millrace/base/text.hpp>
#include <millrace/io/file/posix_files.hpp>
#include <millrace/sources/list/brace_expansion.hpp>
#include <millrace/sync/slow_step.hpp>
#include <millrace/sources/list/path_glob.hpp>

#include <dirent.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE bool is_shard_name(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 7> endings{".tar",     ".tar.gz", ".tgz",    ".tar.zst",
                                                    ".tar.bz2", ".tar.xz", ".tar.lz4"};
  return !name.empty() && name.front() != '.' &&
         std::any_of(endings.begin(), endings.end(), [name](std::string_view end) { return name.ends_with(end); });
}

MILLRACE_RARE std::string_view local_path(std::string_view location) {
  if (location.starts_with("file:")) {
    location.remove_prefix(5);
    if (location.starts_with("//")) {
      const std::size_t path_at = location.find('/', 2);
      const std::string_view host = location.substr(2, path_at == std::string_view::npos ? path_at : path_at - 2);
      if (path_at == std::string_view::npos || (!host.empty() && host != "localhost"))
        throw setup_error("'file:" + printable(location) + "' refers to another machine",
                          "Write file:///path for a local path");
      location.remove_prefix(path_at);
    }
    return location;
  }
  const std::size_t scheme_end = location.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                            "0123456789+.-");
  const std::string_view rest = scheme_end == std::string_view::npos ? "" : location.substr(scheme_end);
  if (location.starts_with("pipe:"))
    throw setup_error("'" + printable(location) + "' is a command, and commands are never run",
                      "Download the shards first, or mount the storage as a file system");
  if (scheme_end != 0 && rest.starts_with("://"))
    throw setup_error("'" + printable(location) + "' is not a local file: the scheme '" +
                          printable(location.substr(0, scheme_end)) + "' needs a storage",
                      "Include millrace/adapt/remote.hpp and pass {.storage = mr::remote()} to the source, or "
                      "download the files first");
  return location;
}

MILLRACE_RARE bool exists(const std::string& path) noexcept {
  struct ::stat status{};
  return ::stat(path.c_str(), &status) == 0;
}

MILLRACE_RARE bool is_folder(const std::string& path) noexcept {
  struct ::stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

MILLRACE_RARE std::vector<std::string> glob_matches(const std::string& pattern, const listed_folder_rule& rule) {
  if (has_deep_glob(pattern)) return deep_matches(pattern, rule);
  struct matches : ::glob_t {
    matches() : ::glob_t() {}
    matches(const matches&) = delete;
    matches& operator=(const matches&) = delete;
    ~matches() { ::globfree(this); }
  } results;
  const int result = ::glob(pattern.c_str(), GLOB_ERR | GLOB_NOSORT | GLOB_NOESCAPE, nullptr, &results);
  if (result == GLOB_NOSPACE) throw std::bad_alloc();
  const std::string_view fixed = std::string_view(pattern).substr(0, pattern.find_first_of("*?["));
  const std::string folder(fixed.substr(0, fixed.rfind('/') + 1));   // without a slash, npos + 1 is 0
  if (!folder.empty() && !exists(folder)) return {};
  if (result != 0 && result != GLOB_NOMATCH)
    throw io_error("a folder of the pattern '" + printable(pattern) + "' cannot be read", "Check its permissions");
  std::vector<std::string> paths(results.gl_pathv, results.gl_pathv + results.gl_pathc);
  if (rule.recursive) std::erase_if(paths, is_folder);
  sort_texts(paths);
  return paths;
}

/// Returns the files that a folder selects.
MILLRACE_RARE std::vector<std::string> shards_of_folder(const std::string& folder, const listed_folder_rule& rule) {
  if (!rule.recursive) return shards_in(folder, rule);
  std::vector<std::string> paths = files_below_pattern(folder, rule);
  if (paths.empty())
    throw setup_error("the folder '" + printable(folder) + "' and its subfolders contain no files", rule.hint);
  return paths;
}

MILLRACE_RARE std::vector<std::string> shards_in(const std::string& folder, const listed_folder_rule& rule) {
  const auto close = [](DIR* opened) { ::closedir(opened); };
  const std::unique_ptr<DIR, decltype(close)> open_folder(::opendir(folder.c_str()), close);
  if (!open_folder)
    throw io_error("the folder '" + printable(folder) + "' cannot be read: " + reason_of(errno),
                   "Check its permissions");
  std::vector<std::string> paths;
  for (;;) {
    errno = 0;
    const dirent* item = ::readdir(open_folder.get());
    if (!item) break;
    if (rule.accepts(item->d_name)) paths.push_back(folder + (folder.ends_with('/') ? "" : "/") + item->d_name);
  }
  if (errno != 0)
    throw io_error("the folder '" + printable(folder) + "' cannot be read: " + reason_of(errno), "Check its storage");
  if (paths.empty()) throw setup_error("the folder '" + printable(folder) + "' has no shards", rule.hint);
  sort_texts(paths);
  return paths;
}

MILLRACE_RARE std::string unreadable_shard_because(const std::string& path) {
  struct ::stat status{};
  if (::stat(path.c_str(), &status) != 0 || ::access(path.c_str(), R_OK) != 0) return reason_of(errno);
  return S_ISREG(status.st_mode) ? "" : "not a regular file";
}

/// Returns advice for a path. For a relative path, it contains the working directory.
MILLRACE_RARE std::string working_directory_hint(std::string_view path) {
  if (path.starts_with('~')) return "The shell expands ~ only outside quotes. Write the home folder instead of ~";
  if (path.starts_with('/')) return "Check the path";
  char folder[4096];
  return "Check the path" + (::getcwd(folder, sizeof folder)
                                 ? ". Relative paths begin at the working directory, " + printable(folder)
                                 : std::string());
}

/// Returns an existing file whose name differs from the missing path only in leading zeros, or "".
MILLRACE_RARE std::string pattern_with_other_zeros(const std::string& path) {
  constexpr const char* digits = "0123456789";
  const std::size_t end = path.find_last_of(digits) + 1;   // without a digit, npos + 1 is 0
  if (end == 0) return {};
  const std::size_t begin = path.find_last_not_of(digits, end - 1) + 1;
  std::string value = path.substr(begin, end - begin);
  value.erase(0, std::min(value.find_first_not_of('0'), value.size() - 1));
  for (std::size_t width = value.size(); width <= 12; ++width) {
    const std::string other = path.substr(0, begin) + std::string(width - value.size(), '0') + value + path.substr(end);
    if (other != path && exists(other)) return other;
  }
  return {};
}

/// Returns a path with its last number replaced by *.
MILLRACE_RARE std::string glob_of(const std::string& path) {
  constexpr const char* digits = "0123456789";
  const std::size_t end = path.find_last_of(digits) + 1;
  if (end == 0) return path;
  const std::size_t begin = path.find_last_not_of(digits, end - 1) + 1;
  return path.substr(0, begin) + "*" + path.substr(end);
}

/// Returns advice about shards that cannot be read.
MILLRACE_RARE std::string advice_about_shards(const std::vector<std::string>& paths, std::size_t bad) {
  const auto first = std::find_if(paths.begin(), paths.end(),
                                  [](const auto& p) { return !unreadable_shard_because(p).empty(); });
  if (first == paths.end()) return "Check the paths";
  if (const std::string other = pattern_with_other_zeros(*first); !other.empty())
    return "'" + printable(other) + "' exists. Write the range with its leading zeros, as in {000..146}";
  const std::string path = working_directory_hint(*first);
  if (bad == paths.size()) return path;
  return path + ". To use the existing shards, name them by a glob such as '" + printable(glob_of(*first)) +
         "', or set .damaged_shards_at_most of shards()";
}

MILLRACE_RARE void check_readable(const std::vector<std::string>& paths, std::size_t at_most) {
  if (at_most >= paths.size()) return;
  constexpr std::size_t max_named = 3;
  std::string named;
  std::size_t bad = 0;
  for (const auto& path : paths) {
    const std::string reason = unreadable_shard_because(path);
    if (reason.empty()) continue;
    if (++bad <= max_named) named += (named.empty() ? "'" : ", '") + printable(path) + "' (" + reason + ")";
  }
  if (bad <= at_most) return;
  throw setup_error(std::to_string(bad) + " of " + std::to_string(paths.size()) + " shards cannot be read: " + named +
                        (bad > max_named ? ", ..." : ""),
                    advice_about_shards(paths, bad));
}

MILLRACE_RARE std::uint64_t size_of_file(const std::string& path) noexcept {
  struct ::stat status{};
  return ::stat(path.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

MILLRACE_RARE std::int64_t time_of_file_ns(const std::string& path) noexcept {
  struct ::stat status{};
  return ::stat(path.c_str(), &status) == 0 ? modified_ns(status) : 0;
}

MILLRACE_RARE std::vector<std::string> resolve_shard_names(const std::vector<std::string>& names,
                                                           const shard_listing_options& o) {
  if (!o.at.is_local()) return names;
  if (names.empty()) throw setup_error("the list of shards is empty", "Name at least one shard");
  std::vector<std::string> paths;
  paths.reserve(names.size());
  for (const auto& name : names) paths.emplace_back(exists(name) ? name : local_path(name));
  check_readable(paths, o.rule.unreadable_at_most);
  return paths;
}

MILLRACE_RARE std::vector<std::string> resolve_shard_names(std::string_view pattern, const shard_listing_options& o) {
  if (!o.at.is_local()) return list_stored(pattern, o);
  const listed_folder_rule& rule = o.rule;
  std::vector<std::string> paths;
  const auto append = [&paths](std::vector<std::string> more) {
    for (auto& path : more) paths.push_back(std::move(path));
  };
  for (std::size_t at = 0; at <= pattern.size();) {
    const std::size_t end = std::min(pattern.find("::", at), pattern.size());
    const std::string_view part = pattern.substr(at, end - at);
    if (part.empty())
      throw setup_error("the pattern '" + printable(pattern) + "' has an empty part",
                        "Name at least one shard before and after each ::");
    (void)local_path(part);   // checked before the expansion, because a command may contain braces
    for (const auto& expanded : expand_braces(part)) {
      const std::string path(local_path(expanded));
      const bool is_glob = path.find_first_of("*?[") != std::string::npos && !exists(path);
      if (rule.ignore_missing && !is_glob && !exists(path)) continue;
      std::vector<std::string> matches = is_glob ? glob_matches(path, rule) : std::vector<std::string>{path};
      if (matches.empty() && !rule.ignore_missing)
        throw setup_error("no file matches '" + printable(path) + "'", working_directory_hint(path));
      for (auto& match : matches) {
        if (is_folder(match)) append(shards_of_folder(match, rule));
        else paths.push_back(std::move(match));
      }
    }
    at = end + 2;
  }
  check_readable(paths, rule.unreadable_at_most);
  return paths;
}

/// Returns whether a pattern selects this file of a storage. A pattern that ends with a slash is a folder.
MILLRACE_RARE bool selects(const std::string& pattern, const std::string& file, const listed_folder_rule& rule) {
  const std::string_view last = std::string_view(file).substr(file.rfind('/') + 1);
  if (pattern.ends_with('/') && rule.recursive)
    return !last.empty() && rule.accepts(last) && path_matches("**", std::string_view(file).substr(pattern.size()));
  if (pattern.ends_with('/')) return file.size() == pattern.size() + last.size() && rule.accepts(last);
  if (has_deep_glob(pattern)) return path_matches(pattern, file) && (!pattern.ends_with("**") || rule.accepts(last));
  return ::fnmatch(pattern.c_str(), file.c_str(), FNM_PATHNAME | FNM_NOESCAPE) == 0;
}

MILLRACE_RARE std::vector<std::string> list_stored(std::string_view pattern, const shard_listing_options& o) {
  notice_outlet notices(o.notice);
  slow_step step("lists files in the storage", {.notices = &notices, .after_ns = o.report_after_ns});
  std::vector<std::string> names;
  for (std::size_t at = 0; at <= pattern.size();) {
    const std::size_t end = std::min(pattern.find("::", at), pattern.size());
    const std::string_view part = pattern.substr(at, end - at);
    if (part.empty())
      throw setup_error("the pattern '" + printable(pattern) + "' has an empty part",
                        "Name at least one shard before and after each ::");
    for (std::string& name : expand_braces(part)) {
      const std::size_t glob = name.find_first_of("*?[");
      const bool is_folder = name.ends_with('/');
      if (glob == std::string::npos && !is_folder) {
        if (o.rule.ignore_missing) {
          const slow_step::item here(step, name);
          if (!o.at->find(name)) continue;
        }
        names.push_back(std::move(name));
        continue;
      }
      const std::size_t before = names.size();
      const slow_step::item here(step, name);
      for (std::string& file : o.at->list(name.substr(0, glob))) {
        if (selects(name, file, o.rule)) names.push_back(std::move(file));
      }
      sort_texts(names, before);
      if (names.size() == before && !o.rule.ignore_missing)
        throw setup_error("no file in the storage matches '" + printable(name) + "'",
                          is_folder ? o.rule.hint : "Check the pattern");
    }
    at = end + 2;
  }
  return names;
}

}   // namespace detail

}}   // namespace millrace
