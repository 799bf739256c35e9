// Defines what token_blocks.hpp declares.
#pragma once

#include <millrace/sources/token_blocks.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE auto token_blocks::find_or_add(const name& n) -> std::shared_ptr<block> {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<block>& b = blocks_[n];
  if (!b) b = std::make_shared<block>();
  b->asked_for_at = ++asked_;
  return b;
}

MILLRACE_INLINE void token_blocks::forget(const name& n, block& b) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(b.forgotten, true)) return;
  blocks_.erase(n);
}

MILLRACE_INLINE void token_blocks::kept(block& b) {
  const std::lock_guard lock(mutex_);
  if (b.forgotten) return;
  b.counted_bytes = b.data.size();
  kept_bytes_ += b.counted_bytes;
  while (kept_bytes_ > options_.limit_bytes) {
    auto oldest = blocks_.end();
    for (auto at = blocks_.begin(); at != blocks_.end(); ++at)
      if (at->second.get() != &b && at->second->counted_bytes > 0 &&
          (oldest == blocks_.end() || at->second->asked_for_at < oldest->second->asked_for_at))
        oldest = at;
    if (oldest == blocks_.end()) return;
    kept_bytes_ -= oldest->second->counted_bytes;
    oldest->second->forgotten = true;
    blocks_.erase(oldest);
  }
}

}}}  // namespace millrace::detail
