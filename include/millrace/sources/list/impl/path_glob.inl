// Definitions for path_glob.hpp.
#pragma once

#include <millrace/sources/list/path_glob.hpp>

#include <millrace/base/error.hpp>
#include <millrace/base/text.hpp>
#include <millrace/io/file/posix_files.hpp>

#include <dirent.h>
#include <fnmatch.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Removes the first component and the slash after it from a path. Returns the component.
MILLRACE_RARE std::string_view take_path_component(std::string_view& path) noexcept {
  const std::size_t end = std::min(path.find('/'), path.size());
  const std::string_view first = path.substr(0, end);
  path.remove_prefix(std::min(end + 1, path.size()));
  return first;
}

MILLRACE_RARE bool has_deep_glob(std::string_view pattern) noexcept {
  for (;;) {
    const bool is_last = pattern.find('/') == std::string_view::npos;
    if (take_path_component(pattern) == "**") return true;
    if (is_last) return false;
  }
}

MILLRACE_RARE std::string_view fixed_folder(std::string_view pattern) noexcept {
  const std::string_view literal = pattern.substr(0, pattern.find_first_of("*?["));
  return literal.substr(0, literal.rfind('/') + 1);   // without a slash, npos + 1 is 0
}

MILLRACE_RARE bool path_matches(std::string_view pattern, std::string_view path) {
  for (;;) {
    const bool pattern_ends = pattern.find('/') == std::string_view::npos;
    const std::string_view glob = take_path_component(pattern);
    if (glob == "**") {
      if (pattern_ends) pattern = "*";
      // "**/**" matches the same folders as "**".
      while (pattern.starts_with("**/")) pattern.remove_prefix(3);
      if (pattern == "**") pattern = "*";
      for (;;) {
        if (path_matches(pattern, path)) return true;
        if (path.starts_with('.') || path.find('/') == std::string_view::npos) return false;
        take_path_component(path);
      }
    }
    const bool path_ends = path.find('/') == std::string_view::npos;
    const std::string component(take_path_component(path));
    if (::fnmatch(std::string(glob).c_str(), component.c_str(), FNM_PERIOD | FNM_NOESCAPE) != 0) return false;
    if (pattern_ends || path_ends) return pattern_ends && path_ends;
  }
}

/// Reads a folder and all folders below it.
class folder_walk {
 public:
  /// Reads all files below `folder`, which ends with a slash or is empty.
  MILLRACE_RARE folder_walk(const std::string& folder, bool with_hidden) : with_hidden_(with_hidden) {
    // A link may also lead to a folder that contains `folder`.
    struct ::stat status{};
    for (std::string path = folder + "../"; posix_files::stat_path(path.c_str(), status) == 0; path += "../") {
      const std::pair id(status.st_dev, status.st_ino);
      if (!above_.empty() && above_.back() == id) break;
      above_.push_back(id);
    }
    read(folder);
  }

  std::vector<std::string> take_files() { return std::move(files_); }

 private:
  enum class kind { file, folder, other };

  MILLRACE_RARE void read(const std::string& folder) {
    const std::string display_name = folder.empty() ? "." : folder;
    const auto close = [](DIR* opened) { ::closedir(opened); };
    const std::unique_ptr<DIR, decltype(close)> opened(::opendir(display_name.c_str()), close);
    struct ::stat status{};
    if (!opened || posix_files::stat_open(::dirfd(opened.get()), status) != 0) fail(display_name);
    const std::pair id(status.st_dev, status.st_ino);
    if (std::find(above_.begin(), above_.end(), id) != above_.end()) return;   // a link leads to a folder above
    above_.push_back(id);
    std::vector<std::string> folders;
    for (;;) {
      errno = 0;
      const dirent* const entry = ::readdir(opened.get());
      if (!entry) break;
      const std::string_view name = entry->d_name;
      if (name == "." || name == ".." || (name.starts_with('.') && !with_hidden_)) continue;
      std::string path = folder + std::string(name);
      switch (kind_of(path, *entry)) {
        case kind::folder: folders.push_back(std::move(path) + "/"); break;
        case kind::file: files_.push_back(std::move(path)); break;
        case kind::other: break;
      }
    }
    if (errno != 0) fail(display_name);
    for (const std::string& below : folders) read(below);
    above_.pop_back();
  }

  static kind kind_of(const std::string& path, const dirent& entry) noexcept {
    if (entry.d_type == DT_REG) return kind::file;
    if (entry.d_type == DT_DIR) return kind::folder;
    if (entry.d_type != DT_LNK && entry.d_type != DT_UNKNOWN) return kind::other;
    struct ::stat status{};
    if (posix_files::stat_path(path.c_str(), status) != 0) return kind::file;   // a later read reports the error
    return S_ISREG(status.st_mode) ? kind::file : S_ISDIR(status.st_mode) ? kind::folder : kind::other;
  }
  [[noreturn]] MILLRACE_RARE static void fail(const std::string& folder) {
    const int reason = errno;
    throw io_error("the folder '" + printable(folder) + "' cannot be read: " + reason_of(reason),
                   "Check that the folder exists, and that its permissions allow reading");
  }

  const bool with_hidden_;
  std::vector<std::pair<dev_t, ino_t>> above_{};
  std::vector<std::string> files_{};
};

MILLRACE_RARE std::vector<std::string> files_below_pattern(const std::string& folder, const listed_folder_rule& rule) {
  folder_walk walk(folder.ends_with('/') ? folder : folder + "/", false);
  std::vector<std::string> files = walk.take_files();
  std::erase_if(files, [&](const std::string& file) {
    return !rule.accepts(std::string_view(file).substr(file.rfind('/') + 1));
  });
  sort_texts(files);
  return files;
}

MILLRACE_RARE std::vector<std::string> deep_matches(const std::string& pattern, const listed_folder_rule& rule) {
  const std::string folder(fixed_folder(pattern));
  const std::string_view below = std::string_view(pattern).substr(folder.size());
  struct ::stat status{};
  if (!folder.empty() && posix_files::stat_path(folder.c_str(), status) != 0 && errno == ENOENT) return {};
  folder_walk walk(folder, below.starts_with('.') || below.find("/.") != std::string_view::npos);
  std::vector<std::string> files = walk.take_files();
  const bool by_rule = below.ends_with("**");
  std::erase_if(files, [&](const std::string& file) {
    const std::string_view path = std::string_view(file).substr(folder.size());
    return !path_matches(below, path) || (by_rule && !rule.accepts(path.substr(path.rfind('/') + 1)));
  });
  sort_texts(files);
  return files;
}

}}}   // namespace millrace::detail
