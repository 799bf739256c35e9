// A queue that returns entries in the order of their keys. An entry can be removed as soon as no later arrival can have
// a lower key.
//
//   struct entry { std::uint64_t key = 0, index = 0; };
//   mr::detail::sliding_jitter<entry> order;
//   while (!order.is_certain() && order.arrived() < length) order.push({.key = key_of(order.arrived())});
//   entry next = order.pop();                        // next.index is the number of earlier arrivals
//
// Entries arrive one by one. A key is a position in fixed point with 16 fraction bits. Entry i has a key of at least i
// * 65536. Therefore the lowest key is final once it is at most 65536 times the number of arrived entries. If keys are
// equal, the lower index is first.
// Cost: a heap of the waiting entries, O(log n) for each entry. Errors: std::bad_alloc. Threads: not thread-safe.
#pragma once

#include <millrace/base/version.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// `Entry` is a struct with the members `key` and `index`, and any other members.
template <class Entry>
class sliding_jitter {
 public:
  /// Returns whether pop() returns `a` after `b`.
  static bool sorts_after(const Entry& a, const Entry& b) noexcept {
    return (a.key > b.key) | ((a.key == b.key) & (a.index > b.index));   // avoids branches, which are hard to predict
  }

  /// Empties the queue. The next entry gets the index `arrived`.
  void start(std::uint64_t arrived) noexcept {
    arrived_ = arrived;
    waiting_.clear();
  }
  /// Replaces the queue's entries with `waiting`. The next entry gets the index `arrived`.
  void start(std::uint64_t arrived, std::vector<Entry> waiting) {
    arrived_ = arrived;
    waiting_ = std::move(waiting);
    std::make_heap(waiting_.begin(), waiting_.end(), later());
  }

  /// Returns the number of entries that have arrived, which is the index of the next entry.
  std::uint64_t arrived() const noexcept { return arrived_; }
  bool empty() const noexcept { return waiting_.empty(); }
  std::size_t size() const noexcept { return waiting_.size(); }
  /// Returns true if the queue is not empty and every later arrival is certain to follow the entry that pop() returns.
  bool is_certain() const noexcept { return !waiting_.empty() && waiting_.front().key <= arrived_ << 16; }

  /// Adds the next entry, and sets its index.
  void push(Entry e) {
    e.index = arrived_++;
    waiting_.push_back(std::move(e));
    std::push_heap(waiting_.begin(), waiting_.end(), later());
  }

  /// Removes and returns the entry with the lowest key. Requires that the queue is not empty.
  Entry pop() {
    std::pop_heap(waiting_.begin(), waiting_.end(), later());
    const Entry first = std::move(waiting_.back());
    waiting_.pop_back();
    return first;
  }

  /// Drops the waiting entries.
  void clear() noexcept { waiting_.clear(); }

 private:
  // The standard heap functions put the greatest element at the front. With sorts_after() as the comparison, this
  // element is the first in order. A function object is faster here: g++ would call a function through its address for
  // each comparison.
  struct later {
    bool operator()(const Entry& a, const Entry& b) const noexcept { return sorts_after(a, b); }
  };
  std::vector<Entry> waiting_;   // a heap
  std::uint64_t arrived_ = 0;
};

}}}   // namespace millrace::detail
