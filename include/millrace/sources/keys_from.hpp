// keys_from: reads lists of sample keys from files, for the options `.only` and `.without` of shards().
//
//   auto flow = mr::shards("train-{000..146}.tar", {.without = mr::keys_from("quarantine-*.jsonl")});
//   auto part = mr::shards("train-{000..146}.tar", {.only = mr::keys_from("subset.txt.gz")});
//
// A text file contains one key in each line. Empty lines are skipped.
// A file that ends in .jsonl or .ndjson contains a JSON object in each line. A quarantine list is such a file: a
// session with .on_damage.quarantine writes its damaged samples to it. The object has the string "key". If the object
// also has the string "shard", the key matches only in the shard with this file name. If a key or a shard name is not
// UTF-8, "key_hex" or "shard_hex" contains its bytes in hexadecimal. A line with a shard and a null key is a note about
// the shard, and is skipped. If the writer of a quarantine list was killed, the last line of the list may be truncated.
// A truncated last line is skipped, too.
// Files may be compressed, as for lines(). Patterns are the same as for list_shards(). In a folder, keys_from() reads
// the same files as lines().
// Errors: setup_error for missing files. If allow_missing is set, a pattern without matches is not an error. data_error
// with file and line if a JSON object has no key. Threads: any thread; no shared state.
#pragma once

#include <millrace/io/index/choice/key_list.hpp>
#include <millrace/sources/lines.hpp>

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of keys_from().
struct keys_from_options {
  /// If true, a pattern without matches selects no keys, and is not an error. For example, the first run of a training
  /// job has no quarantine list yet.
  bool allow_missing = false;
  millrace::storage storage{};   ///< storage that contains the files
};

namespace detail {

/// Returns the rule that selects the lists of keys in a folder.
inline listed_folder_rule key_lists(bool allow_missing) noexcept {
  listed_folder_rule rule = text_folder_rule;
  rule.ignore_missing = allow_missing;
  return rule;
}

/// Returns whether `last` is the truncated last line of a quarantine list. A process that is killed in
/// quarantine_list::add() leaves such a line.
bool is_cut_entry(const line& last, std::uint64_t file_bytes) noexcept;

/// Returns the keys in these files.
key_list read_keys(const std::vector<std::string>& files, const storage& at = {});

}   // namespace detail

/// Returns the keys in these files. `names` is one pattern or a list of paths. Throws setup_error if a file is missing,
/// and data_error if a line has no key.
template <detail::file_names Names = std::vector<std::string>>
key_list keys_from(const Names& names, const keys_from_options& options = {}) {
  const bool is_pattern = detail::file_name<Names>;
  const detail::shard_listing_options listing{.rule = detail::key_lists(options.allow_missing && is_pattern),
                                              .at = options.storage};
  return detail::read_keys(detail::list_files(names, listing), options.storage);
}

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/sources/impl/keys_from.inl>
#endif
