// Definitions for part_memory.hpp.
#pragma once

#include <millrace/adapt/remote/transfer/part_memory.hpp>

#include <algorithm>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::optional<part_memory::block> part_memory::take(std::size_t bytes, need how) {
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

MILLRACE_INLINE part_memory::statistics part_memory::now() const {
  const std::lock_guard lock(shared_->mutex);
  return {shared_->held_bytes, shared_->max_bytes};
}

MILLRACE_INLINE void part_memory::give_back(shared& to, piece p) noexcept {
  const std::lock_guard lock(to.mutex);
  to.held_bytes -= p.capacity;
  if (to.held_bytes + to.free_bytes + p.capacity > to.bound_bytes) return;
  const std::size_t bytes = p.capacity;
  try {
    to.free.push_back(std::move(p));
    to.free_bytes += bytes;
  } catch (...) {   // no memory to keep the block for reuse, so it is freed
  }
}

}}}  // namespace millrace::detail
