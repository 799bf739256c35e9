// Definitions for batch_ring.hpp.
#pragma once

#include <millrace/sync/batch_ring.hpp>

#include <algorithm>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE void batch_ring::start(const options& o) {
  const std::lock_guard lock(mutex_);
  rows_ = o.rows;
  slot_bytes_ = o.slot_bytes;
  fixed_ = o.fixed;
  slots_ = std::vector<slot>(o.memory.size());
  slot_of_.resize(o.memory.size());
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    slots_[i].data = o.memory[i];
    if (o.keys) slots_[i].keys = batch_keys(o.rows);
  }
  free_.reserve(slots_.size());
  for (std::size_t i = slots_.size(); i-- > 0;) free_.push_back(i);
}

MILLRACE_INLINE std::uint64_t batch_ring::open_free() {
  const std::lock_guard lock(mutex_);
  while (opened_ < end_batch_) {
    const auto it = free_slot_for_locked(opened_);
    if (it == free_.end()) break;
    const std::size_t index = *it;
    free_.erase(it);
    slot& s = slots_[index];
    s.batch = opened_;
    allow_address_access(s.data, slot_bytes_);
    s.ready = false;
    s.error = nullptr;
    s.error_position = unknown;
    s.damaged.clear();
    s.void_rows.store(0, std::memory_order_relaxed);
    s.digest.store(0, std::memory_order_relaxed);
    s.to_come.store(rows_, std::memory_order_relaxed);
    slot_of_[opened_ % slots_.size()] = index;
    ++opened_;
  }
  return opened_;
}

MILLRACE_INLINE void batch_ring::fail(std::uint64_t batch, std::uint64_t position, std::exception_ptr error) noexcept {
  slot& s = at(batch);
  const std::lock_guard lock(mutex_);
  if (s.error && s.error_position <= position) return;
  s.error = std::move(error);
  s.error_position = position;
}

MILLRACE_INLINE void batch_ring::add_damaged(std::uint64_t batch, damaged_row row) {
  const std::lock_guard lock(mutex_);
  at(batch).damaged.push_back(std::move(row));
}

MILLRACE_INLINE std::vector<damaged_row>& batch_ring::damaged(std::uint64_t batch) {
  std::vector<damaged_row>& all = at(batch).damaged;
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.row < b.row; });
  return all;
}

MILLRACE_INLINE void batch_ring::set_ready(std::uint64_t batch, const slot_extent& extent) {
  {
    const std::lock_guard lock(mutex_);
    slot& s = at(batch);
    s.extent = extent;
    s.ready = true;
    ++ready_count_;
  }
  bell_.ring();
}

MILLRACE_INLINE void batch_ring::mark_epoch_start(std::uint64_t batch) {
  {
    const std::lock_guard lock(mutex_);
    epoch_starts_.push_back(batch);
  }
  bell_.ring();
}

MILLRACE_INLINE void batch_ring::set_end(std::uint64_t batch) {
  {
    const std::lock_guard lock(mutex_);
    end_batch_ = batch;
  }
  bell_.ring();
}

MILLRACE_INLINE void batch_ring::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  bell_.ring();
}

MILLRACE_INLINE batch_ring::take_result batch_ring::take(std::uint64_t batch, bool stop_at_epoch) {
  const std::lock_guard lock(mutex_);
  if (stop_at_epoch && starts_epoch_locked(batch)) return {outcome::epoch_end, {}};
  if (batch >= end_batch_) return {outcome::end, {}};
  if (batch < opened_) {
    slot& s = at(batch);
    if (s.batch == batch && s.ready) {
      s.ready = false;
      --ready_count_;
      ++in_use_;
      return {outcome::ready,
              {slot_of_[batch % slots_.size()], s.data, batch, s.epoch, rows_of(batch),
               s.digest.load(std::memory_order_relaxed), s.extent, s.error, s.keys.texts(), std::move(s.damaged)}};
    }
  }
  return {stopped_ ? outcome::stopped : outcome::not_yet, {}};
}

MILLRACE_INLINE bool batch_ring::can_take(std::uint64_t batch) const {
  const std::lock_guard lock(mutex_);
  if (batch >= end_batch_ || stopped_) return true;
  return batch < opened_ && at(batch).batch == batch && at(batch).ready;
}

MILLRACE_INLINE bool batch_ring::starts_epoch(std::uint64_t batch) const {
  const std::lock_guard lock(mutex_);
  return starts_epoch_locked(batch);
}

MILLRACE_INLINE void batch_ring::forget_epochs_before(std::uint64_t batch) {
  const std::lock_guard lock(mutex_);
  while (epoch_starts_.size() > 1 && epoch_starts_[1] <= batch) epoch_starts_.erase(epoch_starts_.begin());
}

MILLRACE_INLINE std::optional<std::uint64_t> batch_ring::epoch_start_of(std::uint64_t batch) const {
  const std::lock_guard lock(mutex_);
  std::optional<std::uint64_t> last;
  for (const std::uint64_t start : epoch_starts_)
    if (start <= batch) last = start;
  return last;
}

MILLRACE_INLINE void batch_ring::free(std::size_t slot_index) noexcept {
  const std::lock_guard lock(mutex_);
  forbid_access(slots_[slot_index].data, slot_bytes_);
  free_.push_back(slot_index);   // cannot throw: start() reserved the space
  --in_use_;
}

MILLRACE_INLINE bool batch_ring::waits_for_slot(std::uint64_t batch) const {
  const std::lock_guard lock(mutex_);
  return batch >= opened_ && free_slot_for_locked(batch) == free_.end();
}

MILLRACE_INLINE std::size_t batch_ring::in_use() const noexcept {
  const std::lock_guard lock(mutex_);
  return in_use_;
}

MILLRACE_INLINE std::size_t batch_ring::ready() const noexcept {
  const std::lock_guard lock(mutex_);
  return ready_count_;
}

MILLRACE_INLINE std::vector<std::size_t>::const_iterator batch_ring::free_slot_for_locked(std::uint64_t batch) const {
  if (fixed_) return std::find(free_.begin(), free_.end(), batch % slots_.size());
  return free_.empty() ? free_.end() : free_.end() - 1;
}

MILLRACE_INLINE bool batch_ring::starts_epoch_locked(std::uint64_t batch) const {
  return std::find(epoch_starts_.begin(), epoch_starts_.end(), batch) != epoch_starts_.end();
}

}}}   // namespace millrace::detail
