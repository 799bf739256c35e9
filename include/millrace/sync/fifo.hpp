// Implements a queue that allocates memory only when it becomes longer than ever before.
//
//   mr::detail::fifo<std::string> shards;
//   shards.push("train-000012.tar");
//   while (!shards.empty()) read(shards.pop());
//
// Errors: throws std::bad_alloc. Threads: not synchronized; the caller must lock the queue if several threads use it.
#pragma once

#include <millrace/base/version.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

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

}}}   // namespace millrace::detail
