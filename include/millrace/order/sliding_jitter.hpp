// Gives entries in the order of their keys as soon as no later arrival can come before them.
//
//   struct entry { std::uint64_t key = 0, index = 0; };
//   mr::detail::sliding_jitter<entry> order;
//   while (!order.is_certain() && order.arrived() < length) order.push({.key = key_of(order.arrived())});
//   entry next = order.pop();                        // with its index: the number of its arrival
//
// Entries arrive one by one. Keys are in 1/65536 of a sample, and entry i has a key of at least i * 65536. So the
// lowest key is final once as many entries have arrived as it says. If keys are equal, the lower index comes first.
// Costs: a heap of what has arrived and not left, O(log n) each. Errors: std::bad_alloc. Threads: one at a time.
#pragma once

#include <millrace/base/version.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// `Entry` is a struct with `key` and `index`, and whatever else it carries.
template <class Entry>
class sliding_jitter {
 public:
  /// Returns whether `a` leaves after `b`.
  static bool comes_later(const Entry& a, const Entry& b) noexcept {
    return (a.key > b.key) | ((a.key == b.key) & (a.index > b.index));   // no branches, which are hard to predict
  }

  /// Starts with nothing held: entries below `arrived` have left.
  void start(std::uint64_t arrived) noexcept {
    arrived_ = arrived;
    held_.clear();
  }
  /// Starts in the middle: entries below `arrived` are held or have left.
  void start(std::uint64_t arrived, std::vector<Entry> held) {
    arrived_ = arrived;
    held_ = std::move(held);
    std::make_heap(held_.begin(), held_.end(), later());
  }

  /// Returns how many entries have arrived: the index of the next one.
  std::uint64_t arrived() const noexcept { return arrived_; }
  bool empty() const noexcept { return held_.empty(); }
  std::size_t size() const noexcept { return held_.size(); }
  /// Returns whether no later arrival can come before the entry that pop() returns.
  bool is_certain() const noexcept { return !held_.empty() && held_.front().key <= arrived_ << 16; }

  /// Takes the next entry, and sets its index.
  void push(Entry e) {
    e.index = arrived_++;
    held_.push_back(std::move(e));
    std::push_heap(held_.begin(), held_.end(), later());
  }

  /// Returns the entry with the lowest key. There is one.
  Entry pop() {
    std::pop_heap(held_.begin(), held_.end(), later());
    const Entry first = std::move(held_.back());
    held_.pop_back();
    return first;
  }

  /// Drops what is held.
  void clear() noexcept { held_.clear(); }

 private:
  // The heap functions keep the greatest element at the front, so comes_later() serves as their less-than. It is handed
  // over as an object: g++ calls a function's address for each comparison.
  struct later {
    bool operator()(const Entry& a, const Entry& b) const noexcept { return comes_later(a, b); }
  };
  std::vector<Entry> held_;   // a heap
  std::uint64_t arrived_ = 0;
};

}}}  // namespace millrace::detail
