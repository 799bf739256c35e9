// A bounded ring of entries addressed by ticket: one producer puts them in order, any thread takes them by number.
//
//   item_ring<sample<record>> ring(512);
//   if (ring.has_room(ticket)) ring.put(ticket, std::move(s));   // producer: tickets rise one by one
//   auto s = ring.take(ticket);                                  // any thread, each ticket once
//
// A put happens before the take of the same ticket only if something else orders them (the pump's counters do); a take
// happens before the put that reuses its entry. Neither waits, neither allocates. The capacity is a power of two.
#pragma once

#include <millrace/base/version.hpp>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace millrace::inline MILLRACE_ABI {

template <class T>
class item_ring {
 public:
  explicit item_ring(std::size_t at_least) : entries_(std::bit_ceil(at_least)), mask_(entries_.size() - 1) {}

  std::size_t capacity() const noexcept { return entries_.size(); }
  bool has_room(std::uint64_t ticket) const noexcept { return !at(ticket).full.load(); }

  void put(std::uint64_t ticket, T&& value) {
    fill(ticket, [&](T& place) { place = std::move(value); });
  }
  /// As put(), by a function that gets the empty (default-made) entry.
  template <class Write>
  void fill(std::uint64_t ticket, const Write& write) {
    entry& e = at(ticket);
    write(e.value);
    e.full.store(true, std::memory_order_relaxed);   // for the producer itself
  }
  /// What take() would give.
  const T& peek(std::uint64_t ticket) const noexcept { return at(ticket).value; }
  T take(std::uint64_t ticket) {
    entry& e = at(ticket);
    T value = std::exchange(e.value, T{});
    e.full.store(false);
    return value;
  }

 private:
  struct entry {
    std::atomic<bool> full{false};
    T value{};
  };
  entry& at(std::uint64_t ticket) noexcept { return entries_[ticket & mask_]; }
  const entry& at(std::uint64_t ticket) const noexcept { return entries_[ticket & mask_]; }

  std::vector<entry> entries_;
  const std::uint64_t mask_;
};

}  // namespace millrace::inline MILLRACE_ABI
