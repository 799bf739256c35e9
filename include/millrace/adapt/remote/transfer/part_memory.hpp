// Memory for prefetched bytes, with one limit for all readers.
//
//   mr::detail::part_memory memory(256 << 20);
//   auto block = memory.take(8 << 20, mr::detail::part_memory::need::optional);   // empty if the limit is reached
//   if (block) fetch_into(block->bytes());                                        // ~block() returns the memory
//
// Required blocks may exceed the limit, because a waiting reader must be able to continue. Returned blocks are reused.
// Errors: std::bad_alloc. Threads: any thread. Lifetime: a block may outlive the part_memory.
#pragma once

#include <millrace/device/slot_memory.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Allocates blocks of memory up to a limit.
class part_memory {
 public:
  enum class need : bool { optional, required };

 private:
  struct piece {
    struct release {
      void operator()(std::byte* memory) const noexcept { free_slot(memory); }
    };
    std::unique_ptr<std::byte[], release> memory{};
    std::size_t capacity = 0;
  };
  struct shared {
    explicit shared(std::size_t bound) : bound_bytes(bound) {}
    const std::size_t bound_bytes;
    std::mutex mutex{};   // guards all members below
    std::size_t held_bytes = 0, max_bytes = 0, free_bytes = 0;
    std::vector<piece> free{};
  };

 public:
  /// A block of memory. The destructor returns the memory for reuse.
  class block {
   public:
    block(block&& other) noexcept
        : from_(std::move(other.from_)), piece_(std::move(other.piece_)), size_(std::exchange(other.size_, 0)) {}
    block& operator=(block&& other) noexcept {
      std::swap(from_, other.from_);
      std::swap(piece_, other.piece_);
      std::swap(size_, other.size_);
      return *this;
    }
    ~block() {
      if (piece_.memory) give_back(*from_, std::move(piece_));
    }

    std::span<std::byte> bytes() const noexcept { return {piece_.memory.get(), size_}; }

   private:
    friend class part_memory;
    block(std::shared_ptr<shared> from, piece p, std::size_t size) noexcept
        : from_(std::move(from)), piece_(std::move(p)), size_(size) {}

    std::shared_ptr<shared> from_;
    piece piece_;
    std::size_t size_;
  };

  explicit part_memory(std::size_t bound_bytes) : shared_(std::make_shared<shared>(bound_bytes)) {}

  /// Returns a block of this size, or nothing if the block is optional and would exceed the limit.
  std::optional<block> take(std::size_t bytes, need how) {
    constexpr std::size_t unit = std::size_t{64} << 10;
    const std::size_t capacity = (std::max<std::size_t>(bytes, 1) + unit - 1) / unit * unit;
    piece result{};
    {
      const std::lock_guard lock(shared_->mutex);
      if (how == need::optional && shared_->held_bytes + capacity > shared_->bound_bytes) return std::nullopt;
      auto& free = shared_->free;
      const auto fits = [&](const piece& p) { return p.capacity >= capacity && p.capacity <= 2 * capacity; };
      if (const auto at = std::find_if(free.begin(), free.end(), fits); at != free.end()) {
        result = std::move(*at);
        *at = std::move(free.back());
        free.pop_back();
        shared_->free_bytes -= result.capacity;
      } else {
        result.capacity = capacity;
      }
      shared_->held_bytes += result.capacity;
      shared_->max_bytes = std::max(shared_->max_bytes, shared_->held_bytes);
    }
    if (!result.memory) try {
        result.memory.reset(static_cast<std::byte*>(allocate_slot(result.capacity)));
      } catch (...) {
        const std::lock_guard lock(shared_->mutex);
        shared_->held_bytes -= result.capacity;
        throw;
      }
    return block(shared_, std::move(result), bytes);
  }

  struct statistics {
    std::size_t held_bytes = 0, max_bytes = 0;
  };
  statistics now() const {
    const std::lock_guard lock(shared_->mutex);
    return {shared_->held_bytes, shared_->max_bytes};
  }
  std::size_t bound_bytes() const noexcept { return shared_->bound_bytes; }

 private:
  static void give_back(shared& to, piece p) noexcept {
    const std::lock_guard lock(to.mutex);
    to.held_bytes -= p.capacity;
    if (to.held_bytes + to.free_bytes + p.capacity > to.bound_bytes) return;
    const std::size_t bytes = p.capacity;
    try {
      to.free.push_back(std::move(p));
      to.free_bytes += bytes;
    } catch (...) {   // the list of free blocks cannot grow, so the block is freed
    }
  }

  std::shared_ptr<shared> shared_;
};

}}}   // namespace millrace::detail
