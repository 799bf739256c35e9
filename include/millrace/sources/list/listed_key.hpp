// One entry of a list of sample keys, as a line of JSON: {"shard": "train-003.tar", "key": "n01440764/0017", ...}.
//
//   const mr::detail::listed_key entry = mr::detail::read_listed_key(text, {.shard = "quarantine-0.jsonl"});
//   if (!entry.key.empty()) leave_out(entry.key, entry.shard);
//
// sources/keys_from.hpp describes the members of the JSON object.
// Errors: data_error, with the location that the caller passes, if the line is not a valid entry. A valid entry is a
// JSON object that has a key or is a note about a shard.
// Threads: pure functions; any thread.
#pragma once

#include <millrace/base/error.hpp>

#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// One entry of a list of keys.
struct listed_key {
  std::string key{};     ///< empty if the line is a note about the shard
  std::string shard{};   ///< empty if the key applies to every shard
};

/// Parses one line of JSON. `of` is the location of the line.
listed_key read_listed_key(std::string_view text, const error_location& of);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/sources/list/impl/listed_key.inl>
#endif
