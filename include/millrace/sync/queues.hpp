// Queues between threads: a queue that grows (fifo), and a bounded ring of entries with tickets (item_ring).
//
//   mr::detail::fifo<std::string> shards;              // allocates memory only when it becomes longer than ever before
//   shards.push("train-000012.tar");
//   while (!shards.empty()) read(shards.pop());
//
//   mr::detail::item_ring<mr::detail::sample<mr::record>> ring(512);
//   if (ring.can_accept(ticket)) ring.put(ticket, std::move(s));   // producer: tickets increase one by one
//   auto item = ring.take(ticket);                               // any thread, each ticket once
//   ring.use(ticket)->keep_origin();                             // without a move; the item is destroyed afterwards
//
// A ticket is the number of an item, from 0. The caller must ensure that put() of a ticket happens before take() of the
// ticket. If the producer calls put() only after can_accept() returned true, the ring ensures that take() happens
// before the put() that reuses the entry. put() and take() do not wait and do not allocate. The capacity of the ring is
// a power of two. Errors: std::bad_alloc from a fifo that grows, and from the constructor of an item_ring. Threads: a
// fifo is not synchronized; the caller must lock it if several threads use it. An item_ring has one producer and any
// number of consumers.
#pragma once

#include <millrace/base/aligned_allocator.hpp>
#include <millrace/base/version.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A first-in, first-out queue in a ring.
template <class T>
class fifo {
 public:
  fifo() = default;
  fifo(const fifo&) = delete;
  fifo& operator=(const fifo&) = delete;
  ~fifo() {
    clear();
    release(ring_, capacity_);
  }

  bool empty() const noexcept { return count_ == 0; }
  std::size_t size() const noexcept { return count_; }

  /// Returns the i-th oldest element; 0 is the oldest.
  T& operator[](std::size_t i) noexcept { return ring_[(first_ + i) & (capacity_ - 1)]; }
  const T& operator[](std::size_t i) const noexcept { return ring_[(first_ + i) & (capacity_ - 1)]; }

  /// Reserves memory for this number of elements, so that push() does not allocate.
  void reserve(std::size_t elements) {
    while (capacity_ < elements) grow();
  }
  void push(T&& value) {
    if (count_ == capacity_) grow();
    std::construct_at(&(*this)[count_], std::move(value));
    ++count_;
  }
  T pop() {
    T value = std::move((*this)[0]);
    drop_first();
    return value;
  }
  /// Returns the oldest elements that are contiguous in memory. The result has at least one element unless the queue is
  /// empty.
  std::span<T> first_run() noexcept { return {ring_ + first_, std::min(count_, capacity_ - first_)}; }
  /// Destroys the oldest element.
  void drop_first() noexcept { drop_first(1); }
  /// Destroys this number of the oldest elements. All of them must be in first_run().
  void drop_first(std::size_t elements) noexcept {
    std::destroy_n(ring_ + first_, elements);
    first_ = (first_ + elements) & (capacity_ - 1);
    count_ -= elements;
  }
  void clear() noexcept {
    while (!empty()) drop_first();
  }

 private:
  static void release(T* ring, std::size_t capacity) noexcept {
    if (ring) std::allocator<T>().deallocate(ring, capacity);
  }
  void grow() {
    const std::size_t larger = capacity_ == 0 ? 16 : 2 * capacity_;
    T* const ring = std::allocator<T>().allocate(larger);
    for (std::size_t i = 0; i < count_; ++i) {
      std::construct_at(ring + i, std::move((*this)[i]));
      std::destroy_at(&(*this)[i]);
    }
    release(std::exchange(ring_, ring), std::exchange(capacity_, larger));
    first_ = 0;
  }

  T* ring_ = nullptr;          // only the elements in the queue are constructed
  std::size_t capacity_ = 0;   // 0 or a power of two
  std::size_t first_ = 0, count_ = 0;
};

/// Stores items by ticket.
template <class T>
class item_ring {
 public:
  /// Allocates the ring. The capacity is `at_least`, rounded up to a power of two.
  explicit item_ring(std::size_t at_least)
      : entries_(std::bit_ceil(at_least)), full_(entries_.size()), mask_(entries_.size() - 1) {}
  item_ring(const item_ring&) = delete;
  item_ring& operator=(const item_ring&) = delete;
  ~item_ring() {
    for (std::size_t i = 0; i < entries_.size(); ++i)
      if (full_[i].load(std::memory_order_acquire)) std::destroy_at(&entries_[i].value);
  }

  std::size_t capacity() const noexcept { return entries_.size(); }
  bool can_accept(std::uint64_t ticket) const noexcept { return !full_[at(ticket)].load(std::memory_order_acquire); }

  void put(std::uint64_t ticket, T&& value) {
    std::construct_at(&entries_[at(ticket)].value, std::move(value));
    full_[at(ticket)].store(true, std::memory_order_relaxed);   // relaxed: only the producer reads this value
  }
  /// Returns the item that take() would return, without removing it.
  const T& peek(std::uint64_t ticket) const noexcept { return entries_[at(ticket)].value; }
  T take(std::uint64_t ticket) { return std::move(*use(ticket)); }
  /// Returns access to the item without moving it. The entry becomes free when the returned object is destroyed.
  auto use(std::uint64_t ticket) noexcept { return used_item(entries_[at(ticket)].value, full_[at(ticket)]); }

 private:
  // If the size of an item is a multiple of the size of a cache line, the item is aligned to a cache line. Without this
  // alignment, it would occupy one more line. Each line of an item must move from one core to another.
  static constexpr std::size_t line_bytes = 64;
  struct alignas(sizeof(T) % line_bytes == 0 ? line_bytes : alignof(T)) entry {
    entry() noexcept {}
    ~entry() {}   // empty, because the ring's destructor destroys the items of full entries
    union {
      T value;
    };
  };

  class used_item {
   public:
    used_item(T& value, std::atomic<bool>& full) noexcept : value_(value), full_(full) {}
    used_item(const used_item&) = delete;
    used_item& operator=(const used_item&) = delete;
    ~used_item() {
      std::destroy_at(&value_);
      // A release store is sufficient. After this store, a consumer changes a sequentially consistent counter. A
      // producer that waits for space reads the counter before it calls can_accept().
      full_.store(false, std::memory_order_release);
    }
    T& operator*() const noexcept { return value_; }
    T* operator->() const noexcept { return &value_; }

   private:
    T& value_;
    std::atomic<bool>& full_;
  };

  std::size_t at(std::uint64_t ticket) const noexcept { return static_cast<std::size_t>(ticket & mask_); }

  aligned_vector<entry> entries_;
  std::vector<std::atomic<bool>> full_;
  const std::uint64_t mask_;
};

}}}   // namespace millrace::detail
