// Definitions for token_blocks.hpp.
#pragma once

#include <millrace/sources/token_blocks.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE auto token_blocks::find_or_add(const name& n) -> std::shared_ptr<block> {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<block>& b = blocks_[n];
  if (!b) b = std::make_shared<block>();
  b->last_request = ++requests_;
  return b;
}

MILLRACE_INLINE void token_blocks::drop(const name& n, block& b) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(b.is_dropped, true)) return;
  blocks_.erase(n);
}

MILLRACE_INLINE void token_blocks::retain(block& b) {
  const std::lock_guard lock(mutex_);
  if (b.is_dropped) return;
  b.counted_bytes = b.data.size();
  retained_bytes_ += b.counted_bytes;
  while (retained_bytes_ > options_.limit_bytes) {
    auto oldest = blocks_.end();
    for (auto at = blocks_.begin(); at != blocks_.end(); ++at)
      if (at->second.get() != &b && at->second->counted_bytes > 0 &&
          (oldest == blocks_.end() || at->second->last_request < oldest->second->last_request))
        oldest = at;
    if (oldest == blocks_.end()) return;
    retained_bytes_ -= oldest->second->counted_bytes;
    oldest->second->is_dropped = true;
    blocks_.erase(oldest);
  }
}

}}}   // namespace millrace::detail
