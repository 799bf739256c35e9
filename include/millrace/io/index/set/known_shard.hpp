// One shard of a data set: the head of its index is known from the start, the rest from its first use.
//
//   mr::detail::known_shard shard;
//   shard.head = head;                                        // by find_shard_heads()
//   mr::detail::shard_index& index = shard.load(name, files);
//   shard.check_same(name, *file);                            // of a storage, each time that it is opened
//
// Errors: those of index_of() and, for a shard that is not the one of its index, data_error.
// Threads: any, but for the public members, which are set before.
#pragma once

#include <millrace/io/index/set/index_build.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A shard, and its index.
struct known_shard {
  index_summary head{};
  std::shared_ptr<shard_index> index{};   ///< null until it is loaded
  std::uint64_t known_checksums = 0;      ///< number of checksums in the index file
  bool damaged = false;                   ///< it is used in spite of that, and its index is not kept

  /// Returns the index; loads it at the first call.
  shard_index& load(const std::string& name, const index_file_options& files);
  /// Returns how many samples have the key of an earlier one, once after the index was loaded; then 0.
  std::uint64_t take_returning_keys() noexcept {
    return returning_keys_.load(std::memory_order_relaxed) == 0 ? 0 : returning_keys_.exchange(0);
  }
  /// Returns whether the index is loaded.
  bool is_loaded() const noexcept { return ready_; }

  /// Throws data_error if a file of a storage is not the shard that the index was made for. A shard that was not asked
  /// for yet only has to have the size; its version is noted. Requires that the index is loaded.
  void check_same(const std::string& name, const file_identity& identity);

 private:
  std::once_flag loaded_{};
  std::atomic<bool> ready_{false};
  std::atomic<std::uint64_t> returning_keys_{0};
  std::mutex mutex_{};   // guards the time in `head`, and whether it is known
};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/index/set/impl/known_shard.inl>
#endif
