// One shard of a data set. The head of its index is loaded at the start of a run, and the rest of the index at the
// first use of the shard.
//
//   mr::detail::indexed_shard shard;
//   shard.head = head;                                        // from find_shard_heads()
//   mr::detail::shard_index& index = shard.load(name, files);
//   shard.check_same(name, *file);                            // for a shard of a storage, each time it is opened
//
// Errors: load() throws the errors of index_of(). check_same() throws data_error if the shard does not match its index.
// Threads: any thread may call load(), is_loaded() and check_same(). Set `head`, and call set_index() and
// set_damaged(), only before these calls.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/io/index/set/index_build.hpp>
#include <millrace/item/owner.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A shard, and its index.
class indexed_shard {
 public:
  indexed_shard() = default;
  indexed_shard(const indexed_shard&) = delete;
  indexed_shard& operator=(const indexed_shard&) = delete;
  ~indexed_shard() { delete used_.load(); }

  index_summary head{};

  /// Sets an index that was loaded at the start.
  void set_index(std::shared_ptr<shard_index> index) {
    used().index = std::move(index);
    used().known_checksums = head.known_checksums;
  }
  /// Records that the shard is damaged, and that its index will not be stored.
  void set_damaged() { used().damaged = true; }
  bool is_damaged() const noexcept {
    const state* const now = used_.load(std::memory_order_acquire);
    return now && now->damaged;
  }

  /// Returns the index. The first call loads it.
  shard_index& load(const std::string& name, const index_file_options& files) {
    state& s = used();
    std::call_once(s.loaded, [&] {
      if (!s.index) {
        auto loaded = index_of(name, head, {.files = files});
        s.known_checksums = loaded->known_checksums();
        s.index = std::move(loaded);
      }
      s.index->count_returning_keys();
      s.returning_keys = s.index->facts().counters.returning_keys;
    });
    s.ready = true;
    return *s.index;
  }
  /// Returns the index, or null before it is set or loaded.
  shard_index* index() const noexcept {
    const state* const now = used_.load(std::memory_order_acquire);
    return now ? now->index.get() : nullptr;
  }
  /// Returns whether reads have added checksums to the index since it was set or loaded.
  bool has_learned() const noexcept {
    const state* const now = used_.load(std::memory_order_acquire);
    return now && now->index && now->index->known_checksums() > now->known_checksums;
  }
  /// The first call after load() returns the number of samples with an earlier sample's key. Later calls return 0.
  std::uint64_t exchange_returning_keys() noexcept {
    state* const now = used_.load(std::memory_order_acquire);
    return !now || now->returning_keys.load(std::memory_order_relaxed) == 0 ? 0 : now->returning_keys.exchange(0);
  }
  /// Returns whether the index is loaded.
  bool is_loaded() const noexcept {
    const state* const now = used_.load(std::memory_order_acquire);
    return now && now->ready;
  }

  /// Loads the pointer to the state into the CPU's cache.
  void prefetch() const noexcept { __builtin_prefetch(&used_); }
  /// Loads the state into the CPU's cache.
  void prefetch_state() const noexcept {
    const auto* const now = reinterpret_cast<const char*>(used_.load(std::memory_order_relaxed));
    if (now) __builtin_prefetch(now), __builtin_prefetch(now + 64);
  }

  /// Throws data_error if the size or the version of a file in a storage does not match the index. If the index has no
  /// version yet, only the size must match, and check_same() records the version. Requires a loaded index.
  MILLRACE_RARE void check_same(const std::string& name, const file_identity& identity) {
    const file_stamp now = stamp_of(identity);
    const std::lock_guard lock(used().mutex);
    if (!head.identified && now.size_bytes == head.shard.size_bytes) {
      head.shard.modified_ns = now.changed;
      head.identified = true;
      used().index->identify(head.shard);
    }
    if (head.identified && now == file_stamp{head.shard.size_bytes, head.shard.modified_ns}) return;
    const std::string sizes = "another version or size (" + std::to_string(now.size_bytes) +
                              " bytes), expected the version of " + std::to_string(head.shard.size_bytes) +
                              " bytes in ";
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
  struct state {
    std::once_flag loaded{};
    std::shared_ptr<shard_index> index{};
    std::uint64_t known_checksums = 0;   // number of checksums in the index file
    std::atomic<bool> ready{false};
    std::atomic<std::uint64_t> returning_keys{0};
    std::mutex mutex{};   // guards indexed_shard::head
    bool damaged = false;
  };

  /// Returns the state. The first call creates it.
  state& used() {
    state* now = used_.load(std::memory_order_acquire);
    if (now) return *now;
    auto created = make_owner<state>();
    if (used_.compare_exchange_strong(now, created.get())) return *created.release();
    return *now;   // another thread created the state
  }

  std::atomic<state*> used_{nullptr};
};

}}}   // namespace millrace::detail
