// A queue that grows to the largest size it needs and then allocates no more.
//
//   mr::detail::fifo<std::string> shards;
//   shards.push("train-000012.tar");
//   while (!shards.empty()) read(shards.pop());
//
// Errors: none of its own. Threads: one at a time; the caller locks it if several threads use it.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A first-in, first-out queue in a ring.
template <class T>
class fifo {
 public:
  bool empty() const noexcept { return count_ == 0; }
  std::size_t size() const noexcept { return count_; }

  /// Returns the i-th oldest element; 0 is the oldest.
  T& operator[](std::size_t i) noexcept { return ring_[(first_ + i) & (ring_.size() - 1)]; }
  const T& operator[](std::size_t i) const noexcept { return ring_[(first_ + i) & (ring_.size() - 1)]; }

  /// Makes room for so many elements, for which push() then needs no memory.
  void reserve(std::size_t elements) {
    while (ring_.size() < elements) grow();
  }
  void push(T&& value) {
    if (count_ == ring_.size()) grow();
    (*this)[count_++] = std::move(value);
  }
  T pop() {
    T value = std::exchange(ring_[first_], T{});
    first_ = (first_ + 1) & (ring_.size() - 1);
    --count_;
    return value;
  }
  void clear() {
    while (!empty()) static_cast<void>(pop());
  }

 private:
  void grow() {
    std::vector<T> larger(ring_.empty() ? 16 : 2 * ring_.size());
    for (std::size_t i = 0; i < count_; ++i) larger[i] = std::move((*this)[i]);
    ring_ = std::move(larger);
    first_ = 0;
  }

  std::vector<T> ring_;   // its size is 0 or a power of two
  std::size_t first_ = 0, count_ = 0;
};

}}}  // namespace millrace::detail
