// One shard of a data set. The head of its index is known from the start; the rest of the index is loaded at its first
// use.
//
//   mr::detail::indexed_shard shard;
//   shard.head = head;                                        // by find_shard_heads()
//   mr::detail::shard_index& index = shard.load(name, files);
//   shard.check_same(name, *file);                            // for a shard of a storage, at each opening
//
// Errors: the errors of index_of(); data_error if the index describes another shard.
// Threads: any thread may call the functions. Set the public data members before that.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/io/index/set/index_build.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A shard, and its index.
struct indexed_shard {
  index_summary head{};
  std::shared_ptr<shard_index> index{};   ///< null until it is loaded
  std::uint64_t known_checksums = 0;      ///< number of checksums in the index file
  bool damaged = false;                   ///< true: the damaged shard is used, and its index is not stored

  /// Returns the index; loads it at the first call.
  shard_index& load(const std::string& name, const index_file_options& files) {
    std::call_once(loaded_, [&] {
      if (!index) {
        auto loaded = index_of(name, head, {.files = files});
        known_checksums = loaded->known_checksums();
        index = std::move(loaded);
      }
      index->count_returning_keys();
      returning_keys_ = index->facts().counters.returning_keys;
    });
    ready_ = true;
    return *index;
  }
  /// Returns how many samples repeat the key of an earlier sample. The first call after the index was loaded returns
  /// the number; later calls return 0.
  std::uint64_t exchange_returning_keys() noexcept {
    return returning_keys_.load(std::memory_order_relaxed) == 0 ? 0 : returning_keys_.exchange(0);
  }
  /// Returns whether the index is loaded.
  bool is_loaded() const noexcept { return ready_; }

  /// Throws data_error if a file of a storage is not the shard that its index describes. If the shard was not queried
  /// before, only the size must match, and the version is recorded. Requires that the index is loaded.
  void check_same(const std::string& name, const file_identity& identity) {
    const file_stamp now = stamp_of(identity);
    const std::lock_guard lock(mutex_);
    if (!head.identified && now.size_bytes == head.shard.size_bytes) {
      head.shard.modified_ns = now.changed;
      head.identified = true;
      index->identify(head.shard);
    }
    if (head.identified && now == file_stamp{head.shard.size_bytes, head.shard.modified_ns}) return;
    const std::string sizes = std::to_string(now.size_bytes) + " bytes or another version, expected " +
                              std::to_string(head.shard.size_bytes) + " bytes and the version of ";
    const error_location where{.stage = "index", .shard = name};
    if (head.of_set_index)
      throw data_error("the shard does not match the set index: got " + sizes + "the set index",
                       "Write the set index again with inspect --set-index", where);
    if (!head.identified)
      throw data_error("the shard does not match the index next to it: got " + sizes + "its index",
                       "Remove the index, or write it again", where);
    throw data_error("the shard was replaced since this program started: got " + sizes + "its index",
                     "Write new shards under another name, and start again", where);
  }

 private:
  std::once_flag loaded_{};
  std::atomic<bool> ready_{false};
  std::atomic<std::uint64_t> returning_keys_{0};
  std::mutex mutex_{};   // guards the time in `head`, and whether it is known
};

}}}  // namespace millrace::detail
