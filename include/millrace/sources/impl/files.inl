// Definitions for files.hpp.
#pragma once

#include <millrace/sources/files.hpp>

#include <millrace/base/crc32c.hpp>
#include <millrace/base/digest.hpp>
#include <millrace/base/text.hpp>
#include <millrace/io/file/file_list.hpp>
#include <millrace/sources/list/brace_expansion.hpp>
#include <millrace/sources/list/path_glob.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

inline constexpr std::size_t files_at_once = 32;   // concurrent requests to a storage, or system calls for local files

MILLRACE_INLINE file_data::file_data(std::vector<std::string> names, file_data_options o)
    : names_(std::move(names)), options_(std::move(o)), counts_(names_.size(), 1), sizes_(names_.size()) {
  find_classes();
  find_sizes();
  fingerprint_ = names_.size();
  std::uint64_t known_sizes = 0;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    fingerprint_ = combine_keys(combine_keys(fingerprint_, digest_bytes(bytes_of(key(i)))), sizes_[i]);
    if (sizes_[i] != unknown_size) {
      all_bytes_ += sizes_[i];
      ++known_sizes;
    }
    if (!classes_.empty()) fingerprint_ = combine_keys(fingerprint_, classes_[i]);
  }
  if (known_sizes > 0) all_bytes_ += all_bytes_ / known_sizes * (names_.size() - known_sizes);
}

MILLRACE_INLINE void file_data::find_sizes() {
  constexpr std::size_t max_named = 3;
  std::vector<std::string> reasons(names_.size());
  run_concurrently(names_.size(), files_at_once, [&](std::size_t i) {
    if (options_.storage.is_local()) reasons[i] = unreadable_shard_because(names_[i]);
    const auto stamp = reasons[i].empty() ? find_file_stamp(options_.storage, names_[i]) : std::nullopt;
    if (!stamp && reasons[i].empty()) reasons[i] = "it does not exist";
    sizes_[i] = stamp ? stamp->size_bytes : unknown_size;
  });
  std::string named;
  std::size_t bad = 0;
  for (std::size_t i = 0; i < names_.size(); ++i)
    if (!reasons[i].empty() && ++bad <= max_named)
      named += (named.empty() ? "'" : ", '") + printable(names_[i]) + "' (" + reasons[i] + ")";
  if (bad == 0) return;
  notice_ = std::to_string(bad) + " of " + std::to_string(names_.size()) + " files cannot be read: " + named +
            (bad > max_named ? ", ..." : "");
  if (bad > options_.unreadable_at_most)
    throw setup_error(notice_, "Check the paths and permissions, or raise files_options::unreadable_at_most");
}

MILLRACE_INLINE void file_data::find_classes() {
  std::map<std::string_view, std::uint32_t> numbers;
  for (const std::string& name : options_.classes)
    if (!numbers.emplace(name, static_cast<std::uint32_t>(numbers.size())).second)
      throw setup_error("the class '" + printable(name) + "' is in files_options::classes twice",
                        "List each class once");
  classes_.reserve(options_.classes.empty() ? 0 : names_.size());
  for (std::size_t i = 0; i < names_.size() && !numbers.empty(); ++i) {
    const std::string_view folder = key(i).substr(0, key(i).find('/'));
    const bool has_folder = folder.size() < key(i).size();
    const auto it = has_folder ? numbers.find(folder) : numbers.end();
    if (it == numbers.end())
      throw setup_error("the file '" + printable(names_[i]) + "' has no class: got " +
                            (has_folder ? "the folder '" + printable(folder) + "'" : "no folder") +
                            " at the front of its key '" + printable(key(i)) + "', expected one of " +
                            std::to_string(numbers.size()) + " class names",
                        "Move it to its class folder, or set files_options::root so that keys begin with the class");
    classes_.push_back(it->second);
  }
}

MILLRACE_INLINE std::size_t file_data::read(std::span<const located_sample> samples, std::span<record> records,
                                            std::exception_ptr& failure) {
  const auto file_of = [&](std::size_t i) { return static_cast<std::size_t>(samples[i].shard); };
  if (options_.storage.is_local()) {
    record_builder build(pool_);
    for (std::size_t i = 0; i < samples.size(); ++i) try {
        records[i] = read_local(file_of(i), build);
      } catch (...) {
        failure = std::current_exception();
        return i;
      }
    return samples.size();
  }
  std::vector<std::exception_ptr> failures(samples.size());
  run_concurrently(samples.size(), files_at_once, [&](std::size_t i) {
    try {
      record_builder build(pool_);
      records[i] = read_file(file_of(i), build);
    } catch (...) {
      failures[i] = std::current_exception();
    }
  });
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (!failures[i]) continue;
    failure = failures[i];
    return i;
  }
  return samples.size();
}

/// Turns io_error into data_error: an error of a file is an error of its only sample.
MILLRACE_INLINE record file_data::read_local(std::size_t file, record_builder& build) const {
  try {
    return read_file(file, build);
  } catch (const io_error& e) {
    throw data_error(e.message(), e.hint(), location_of({.shard = file}));
  }
}

MILLRACE_INLINE record file_data::read_file(std::size_t file, record_builder& build) const {
  const error_location where = location_of({.shard = file});
  metered_file opened(options_.storage, names_[file], reads_);
  const std::uint64_t size = size_of_open(options_.storage, opened.file());
  if (size != sizes_[file] && sizes_[file] != unknown_size)
    throw data_error("the file changed after files() recorded its size: got " + std::to_string(size) +
                         " bytes, expected " + std::to_string(sizes_[file]),
                     "Write new data under a new name, and start again", where);
  if (size > options_.max_file_bytes)
    throw data_error("the file is too large: got " + std::to_string(size) + " bytes, expected at most " +
                         std::to_string(options_.max_file_bytes),
                     "Omit the file, or raise files_options::max_file_bytes", where);
  const byte_range all{};
  if (!options_.storage.is_local()) opened.will_read({&all, 1});
  build.begin(names_[file], key(file), error_location::unknown);
  const std::span<std::byte> buffer = build.add_field(field_of_proc_file(names_[file]), static_cast<std::size_t>(size));
  if (const std::size_t got = read_fully(opened, 0, buffer); got != buffer.size())
    throw data_error(
        "the file ends too early: got " + std::to_string(got) + " bytes, expected " + std::to_string(buffer.size()),
        "Check that no other program writes to it. Write new data under a new name", where);
  std::uint64_t checksum = combine_keys(0, crc32c(buffer));
  if (!classes_.empty() && !build.has("cls")) {
    const std::string text = std::to_string(classes_[file]);
    const std::span<std::byte> field = build.add_field("cls", text.size());
    std::memcpy(field.data(), text.data(), text.size());
    checksum = combine_keys(checksum, crc32c(field));
  }
  record result = build.finish();
  result.set_checksums(std::max<std::uint64_t>(checksum, 1));   // 0 would mean that the record has no checksum
  return result;
}

MILLRACE_INLINE bool is_shown_file(std::string_view name) noexcept { return !name.starts_with('.'); }

/// Shortens `folder` to the folder that it has in common with `other`. Both end with a slash, or are empty.
MILLRACE_INLINE void keep_common(std::string& folder, std::string_view other) {
  const auto differs = std::mismatch(folder.begin(), folder.end(), other.begin(), other.end()).first;
  folder.erase(differs, folder.end());
  folder.erase(folder.rfind('/') + 1);   // without a slash, npos + 1 is 0
}

/// Returns the folder with which all paths of a pattern begin, before any glob of the pattern.
MILLRACE_INLINE std::string fixed_part_of_files(std::string_view pattern, const storage& at) {
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
MILLRACE_INLINE named_files with_root_folder(std::vector<std::string> paths, std::string root, const files_options& o) {
  if (!o.root.empty()) root = o.root.ends_with('/') ? o.root : o.root + "/";
  for (const std::string& path : paths)
    if (!path.starts_with(root))
      throw setup_error("the file '" + printable(path) +
                            "' is outside files_options::root: expected a path that "
                            "begins with '" +
                            printable(root) + "'",
                        "Write the root exactly as it appears at the start of the paths");
  return {.paths = std::move(paths), .root_bytes = root.size()};
}

MILLRACE_INLINE named_files find_files(std::string_view pattern, const files_options& o) {
  const listed_folder_rule rule{.accepts = is_shown_file,
                                .hint = "Check the folder. Names that begin with a dot are skipped",
                                .unreadable_at_most = std::numeric_limits<std::size_t>::max(),
                                .recursive = true};
  std::vector<std::string> paths = list_files(pattern, {.rule = rule, .at = o.storage});
  return with_root_folder(std::move(paths), fixed_part_of_files(pattern, o.storage), o);
}

MILLRACE_INLINE named_files find_files(std::vector<std::string> names, const files_options& o) {
  if (names.empty()) throw setup_error("the list of files is empty", "Name at least one file");
  if (o.storage.is_local())
    for (std::string& name : names)
      if (!exists(name)) name = std::string(local_path(name));
  return with_root_folder(std::move(names), {}, o);
}

MILLRACE_INLINE std::vector<std::string> classes_of(const named_files& files) {
  std::vector<std::string> all;
  for (const std::string& path : files.paths) {
    const std::string_view key = std::string_view(path).substr(files.root_bytes);
    const std::string_view folder = key.substr(0, std::min(key.find('/'), key.size()));
    if (folder.size() < key.size() && (all.empty() || all.back() != folder)) all.emplace_back(folder);
  }
  detail::sort_texts(all);
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
      throw setup_error("the files have no classes: no key contains a folder; the first key is '" +
                            printable(std::string_view(files.paths.front()).substr(files.root_bytes)) + "'",
                        "Use a pattern whose first wildcard matches the class folders, or set files_options::root");
  }
  if (o.where) {
    const std::size_t before = files.paths.size();
    std::erase_if(files.paths,
                  [&](const std::string& path) { return !o.where(std::string_view(path).substr(files.root_bytes)); });
    if (files.paths.empty())
      throw setup_error(
          "no file is selected: of the matching files, files_options::where rejects all " + std::to_string(before),
          "Check the callable. Its argument is the key, such as cat/1.jpg. By default, a key is the path without the "
          "folders before the first wildcard");
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
