// Defines what known_shard.hpp declares.
#pragma once

#include <millrace/io/index/set/known_shard.hpp>

#include <millrace/base/error.hpp>

#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE shard_index& known_shard::load(const std::string& name, const index_file_options& files) {
  std::call_once(loaded_, [&] {
    if (!index) {
      auto found = index_of(name, head, {.files = files});
      known_checksums = found->known_checksums();
      index = std::move(found);
    }
    index->count_returning_keys();
    returning_keys_ = index->facts().counters.returning_keys;
  });
  ready_ = true;
  return *index;
}

MILLRACE_INLINE void known_shard::check_same(const std::string& name, const file_identity& identity) {
  const file_stamp now = stamp_of(identity);
  const std::lock_guard lock(mutex_);
  if (!head.identified && now.size_bytes == head.shard.size_bytes) {
    head.shard.modified_ns = now.changed;
    head.identified = true;
    index->identify(head.shard);
  }
  if (head.identified && now == file_stamp{head.shard.size_bytes, head.shard.modified_ns}) return;
  const std::string sizes = std::to_string(now.size_bytes) + " bytes or another version, expected the " +
                            std::to_string(head.shard.size_bytes) + " bytes of ";
  const error_location where{.stage = "index", .shard = name};
  if (head.of_set_index)
    throw data_error("the shard is not the one of the set index: it has " + sizes + "that",
                     "Write the set index again by inspect --set-index", where);
  if (!head.identified)
    throw data_error("the index beside the shard is of another one: the shard has " + sizes + "its index",
                     "Remove the index, or write it again", where);
  throw data_error("the shard was replaced since this program has started: it has " + sizes + "its index",
                   "Write new shards under another name, and start again", where);
}

}}}  // namespace millrace::detail
