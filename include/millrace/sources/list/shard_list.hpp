// Expands patterns, globs, folders and lists of names to the list of files to read.
//
//   mr::list_shards("train-{000..146}.tar");                                     // braces
//   mr::list_shards("a/{0..3}.tar::b/*.tar::c");     // patterns, separated by "::"; a folder: all shards in it
//   mr::list_shards("data/**/*.tar");                // "**" matches any number of folders (path_glob.hpp)
//   mr::list_shards({"odd#name?.tar", "x{1}.tar"});  // the names of a list are used literally
//
// A string is first split at "::". Then braces are expanded, and then globs (* ? [..]). The matches of a glob and the
// shards of a folder are sorted by the bytes of their names. In folders, names that begin with a dot are skipped. The
// name of an existing file is used literally, even if it looks like a glob. Names may begin with the scheme "file:".
// Names with another scheme, such as s3://, need a storage (io/file/storage.hpp). A command, such as pipe:cat, is an
// error. In a storage, a name that ends in "/" is a folder.
// Errors: setup_error for a glob or folder without shards, and for shards that are missing, unreadable or not regular
// files. All shards are checked before any is read. io_error for a folder that cannot be read. Threads: any thread; no
// shared state.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/base/notice.hpp>
#include <millrace/io/file/storage.hpp>
#include <millrace/sources/list/path_glob.hpp>

#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <glob.h>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

bool is_shard_name(std::string_view name) noexcept;
inline constexpr listed_folder_rule shard_folder_rule{
    is_shard_name, "Shards end in .tar, .tgz, .tar.gz, .tar.zst, .tar.bz2, .tar.xz or .tar.lz4"};

/// Removes the scheme "file:". Returns a path without a scheme unchanged. Throws setup_error for other schemes and for
/// commands.
std::string_view local_path(std::string_view location);

bool exists(const std::string& path) noexcept;
bool is_folder(const std::string& path) noexcept;

/// Returns the sorted paths that a glob matches.
std::vector<std::string> glob_matches(const std::string& pattern, const listed_folder_rule& rule = shard_folder_rule);

std::vector<std::string> shards_in(const std::string& folder, const listed_folder_rule& rule);

/// Returns the reason why `path` cannot be read, or "" if it can be read.
std::string unreadable_shard_because(const std::string& path);

/// Throws setup_error if more than `at_most` files cannot be read.
void check_readable(const std::vector<std::string>& paths, std::size_t at_most);

std::uint64_t size_of_file(const std::string& path) noexcept;
/// Returns the modification time in nanoseconds since 1970, or 0 if it is unknown.
std::int64_t time_of_file_ns(const std::string& path) noexcept;

/// The storage that contains the files, and the rule that selects the files of a folder.
struct shard_listing_options {
  listed_folder_rule rule = shard_folder_rule;
  storage at{};
  notice_function notice{};   ///< receives a notice if the listing is slow; by default, it is printed to stderr
  std::uint64_t report_after_ns = 10'000'000'000;
};

/// Returns the names that a pattern selects in a remote storage. With `ignore_missing`, omits missing files. Otherwise,
/// throws setup_error for a glob or folder without files, and does not check whether other names exist.
std::vector<std::string> list_stored(std::string_view pattern, const shard_listing_options& o);

/// Returns the files of a pattern.
std::vector<std::string> resolve_shard_names(std::string_view pattern, const shard_listing_options& o);
/// Returns the files of a list. The names are used literally.
std::vector<std::string> resolve_shard_names(const std::vector<std::string>& names, const shard_listing_options& o);

/// Any type from which a std::string can be constructed, such as a literal or a std::filesystem::path.
template <class T>
concept file_name = std::is_constructible_v<std::string, const T&>;
/// The names that a source accepts: a pattern, or a range of names.
template <class T>
concept file_names = file_name<T> || requires(const T& names) {
  requires file_name<decltype(*std::begin(names))>;
  std::end(names);
};

/// Converts a pattern to a std::string, and a range of names to a std::vector<std::string>.
template <file_names Names>
auto names_of(const Names& names) {
  if constexpr (file_name<Names>) {
    return std::string(names);
  } else {
    std::vector<std::string> list;
    for (const auto& name : names) list.emplace_back(name);
    return list;
  }
}

/// Returns the files of a pattern or a list of names.
template <file_names Names>
std::vector<std::string> list_files(const Names& names, const shard_listing_options& o) {
  return resolve_shard_names(names_of(names), o);
}

}   // namespace detail

/// Returns the shards of a pattern or of a list of names. The names of a list are used literally. Throws setup_error if
/// no shard exists or a shard cannot be read, and io_error if a folder cannot be read.
template <detail::file_names Names = std::vector<std::string>>
std::vector<std::string> list_shards(const Names& names) {
  return detail::list_files(names, {});
}

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/sources/list/impl/shard_list.inl>
#endif
