// Definitions for block_cache.hpp.
#pragma once

#include <millrace/io/index/read/block_cache.hpp>

#include <millrace/base/random.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::optional<block_cache::reservation> block_cache::reserve(const cached_block_name& name) {
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = blocks_.try_emplace(name);
  if (!is_new) return std::nullopt;
  at->second = std::make_shared<block>();
  at->second->requested_at = ++requests_;
  reservation owned;
  owned.name_ = name;
  owned.block_ = at->second;
  owned.lock_ = std::unique_lock(at->second->mutex, std::try_to_lock);   // no other thread can have it yet
  return owned;
}

MILLRACE_INLINE std::size_t block_cache::held_bytes() const {
  const std::lock_guard lock(mutex_);
  return held_bytes_;
}

MILLRACE_INLINE std::size_t block_cache::hash::operator()(const cached_block_name& n) const noexcept {
  return static_cast<std::size_t>(combine_keys(n.shard, n.number));
}

MILLRACE_INLINE std::shared_ptr<block_cache::block> block_cache::find_or_add(const cached_block_name& name) {
  const std::lock_guard lock(mutex_);
  auto& entry = blocks_[name];
  if (!entry) entry = std::make_shared<block>();
  entry->requested_at = ++requests_;
  return entry;
}

MILLRACE_INLINE bool block_cache::evict_oldest(const block& except) {
  auto oldest = blocks_.end();
  for (auto at = blocks_.begin(); at != blocks_.end(); ++at)
    if (at->second.get() != &except && at->second->bytes > 0 &&
        (oldest == blocks_.end() || at->second->requested_at < oldest->second->requested_at))
      oldest = at;
  if (oldest == blocks_.end()) return false;
  held_bytes_ -= oldest->second->bytes;
  oldest->second->evicted = true;
  blocks_.erase(oldest);   // a thread that is using the block owns a reference to it
  return true;
}

MILLRACE_INLINE void block_cache::erase(const cached_block_name& name, block& s) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(s.evicted, true)) return;
  held_bytes_ -= s.bytes;
  blocks_.erase(name);
}

}}}   // namespace millrace::detail
