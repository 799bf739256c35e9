// Memory for prefetched bytes, with one limit for all readers.
//
//   mr::detail::part_memory memory(256 << 20);
//   auto block = memory.take(8 << 20, mr::detail::part_memory::need::optional);   // nothing: the limit is reached
//   if (block) fetch_into(block->bytes());                                        // its destructor returns the block
//
// Required blocks may exceed the limit, because a waiting reader must be able to continue. Returned blocks are reused.
// Errors: std::bad_alloc. Threads: any thread. Lifetime: a block may outlive the part_memory.
#pragma once

#include <millrace/device/slot_memory.hpp>

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
  /// A block of memory. Its destructor returns it for reuse.
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

  /// Returns a block of this size, or nothing if the block is optional and the limit is reached.
  std::optional<block> take(std::size_t bytes, need how);

  struct statistics {
    std::size_t held_bytes = 0, max_bytes = 0;
  };
  statistics now() const;
  std::size_t bound_bytes() const noexcept { return shared_->bound_bytes; }

 private:
  static void give_back(shared& to, piece p) noexcept;

  std::shared_ptr<shared> shared_;
};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/transfer/impl/part_memory.inl>
#endif
