// Caches blocks of token files. If windows are read in a shuffled order, the cache avoids repeated reads of a block.
//
//   mr::detail::token_blocks blocks({.block_bytes = 262'144, .limit_bytes = 64 << 20});
//   const auto block = blocks.get({file, number}, [&](std::vector<std::byte>& bytes) { bytes = read(file, number); });
//   blocks.has({file, number});                        // whether the block is in memory
//
// If the limit is exceeded, the least recently requested block is evicted. Errors: the errors of the reading function.
// Threads: thread-safe. If several threads request the same block, one thread reads it, and the others wait. Lifetime:
// a block exists as long as a pointer to it exists.
#pragma once

#include <millrace/base/random.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Blocks of bytes by file and number.
class token_blocks {
 public:
  struct options {
    std::size_t block_bytes = std::size_t{256} << 10, limit_bytes = 0;
  };
  struct name {
    std::uint64_t file = 0, number = 0;

    friend bool operator==(const name&, const name&) = default;
  };
  using bytes = std::vector<std::byte>;

  explicit token_blocks(const options& o) : options_(o) {}
  token_blocks(const token_blocks&) = delete;
  token_blocks& operator=(const token_blocks&) = delete;

  std::size_t block_bytes() const noexcept { return options_.block_bytes; }
  bool has(const name& n) const {
    const std::lock_guard lock(mutex_);
    return blocks_.contains(n);
  }

  /// Returns a block. Calls `read(bytes&)` if the block is not in memory.
  template <class Read>
  std::shared_ptr<const bytes> get(const name& n, const Read& read) {
    const std::shared_ptr<block> b = find_or_add(n);
    const std::lock_guard lock(b->mutex);
    if (!b->is_read) {
      try {
        read(b->data);
      } catch (...) {
        drop(n, *b);
        throw;
      }
      b->is_read = true;
      retain(*b);
    }
    return {b, &b->data};
  }

 private:
  struct block {
    std::mutex mutex{};   // guards data and is_read
    bytes data{};
    bool is_read = false;
    bool is_dropped = false;   // this and the members below are guarded by the cache's mutex
    std::size_t counted_bytes = 0;
    std::uint64_t last_request = 0;
  };
  struct hash {
    std::size_t operator()(const name& n) const noexcept {
      return static_cast<std::size_t>(combine_keys(combine_keys(0, n.file), n.number));
    }
  };

  std::shared_ptr<block> find_or_add(const name& n);
  void drop(const name& n, block& b);
  /// Counts a block that was read, and evicts older blocks if the limit is exceeded.
  void retain(block& b);

  const options options_;
  mutable std::mutex mutex_;   // locked after the mutex of a block
  std::unordered_map<name, std::shared_ptr<block>, hash> blocks_;
  std::size_t retained_bytes_ = 0;
  std::uint64_t requests_ = 0;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/sources/impl/token_blocks.inl>
#endif
