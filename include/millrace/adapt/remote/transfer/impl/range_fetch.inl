// Definitions for range_fetch.hpp.
#pragma once

#include <millrace/adapt/remote/transfer/range_fetch.hpp>

#include <algorithm>
#include <cstring>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::size_t range_fetch::wait_for(std::size_t bytes) {
  std::unique_lock lock(mutex_);
  awaited_end_ = bytes;
  changed_.wait(lock, [&] { return arrived_ >= std::min(bytes, size_bytes()) || failure_; });
  awaited_end_ = 0;
  if (arrived_ < std::min(bytes, size_bytes())) std::rethrow_exception(failure_);
  return arrived_;
}

MILLRACE_INLINE void range_fetch::wait_into(std::size_t from, std::span<std::byte> to) {
  const std::size_t end = from + to.size();
  std::unique_lock lock(mutex_);
  const std::size_t there = std::clamp(arrived_.load(), from, end);
  const std::size_t coming = std::clamp(arrived_ + on_copy_, from, end);
  if (end - coming >= least_direct_bytes && arrived_ >= from && !failure_) {
    direct_ = to.subspan(coming - from);
    buffered_from_ = end;
  }
  const std::size_t buffered_end = direct_.empty() ? end : coming;
  awaited_end_ = end;
  lock.unlock();
  std::memcpy(to.data(), memory_.data() + from, there - from);   // later bytes may arrive during this copy
  lock.lock();
  changed_.wait(lock, [&] { return arrived_ >= end || (failure_ && on_copy_ == 0); });
  awaited_end_ = 0;
  direct_ = {};
  if (arrived_ < end) std::rethrow_exception(failure_);
  lock.unlock();
  std::memcpy(to.data() + (there - from), memory_.data() + there, buffered_end - there);
}

MILLRACE_INLINE bool range_fetch::wait_for_identity() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return begun_ || missing_ || failure_; });
  if (!begun_ && failure_) std::rethrow_exception(failure_);
  return begun_;
}

MILLRACE_INLINE void range_fetch::abandon() {
  std::unique_lock lock(mutex_);
  abandoned_ = true;
  changed_.wait(lock, [&] { return on_copy_ == 0; });
  memory_ = {};
}

MILLRACE_INLINE bool range_fetch::is_over() const {
  const std::lock_guard lock(mutex_);
  return abandoned_ || missing_ || failure_ || arrived_ == size_bytes_;
}

MILLRACE_INLINE void range_fetch::begin(const std::optional<file_identity>& identity) {
  const std::lock_guard lock(mutex_);
  if (identity) {
    object_->identity = identity;
    const std::uint64_t there = identity->size_bytes - std::min(identity->size_bytes, offset_bytes_);
    if (there < size_bytes_) size_bytes_ = static_cast<std::size_t>(there);
  }
  begun_ = true;
  changed_.notify_all();
}

MILLRACE_INLINE bool range_fetch::take(std::uint64_t first_byte, std::span<const std::byte> bytes) {
  std::unique_lock lock(mutex_);
  if (abandoned_ || failure_) return true;
  const std::uint64_t from = offset_bytes_ + arrived_, end = first_byte + bytes.size();
  if (end > from && first_byte <= from && arrived_ < size_bytes_) {
    const auto skipped = static_cast<std::size_t>(from - first_byte);
    on_copy_ = std::min(bytes.size() - skipped, size_bytes_ - arrived_);
    const std::span<std::byte> direct = direct_.first(std::min(on_copy_, direct_.size()));
    const std::span<std::byte> buffered = memory_.subspan(arrived_ + direct.size(), on_copy_ - direct.size());
    direct_ = direct_.subspan(direct.size());
    // Without the lock, so that the reader does not wait for it. The reader uses only arrived bytes, and abandon()
    // waits.
    lock.unlock();
    if (!direct.empty()) std::memcpy(direct.data(), bytes.data() + skipped, direct.size());
    if (!buffered.empty()) std::memcpy(buffered.data(), bytes.data() + skipped + direct.size(), buffered.size());
    lock.lock();
    arrived_ += std::exchange(on_copy_, 0);
  }
  const std::size_t arrived = arrived_, enough = std::min(awaited_end_, size_bytes());
  const bool fulfilled = awaited_end_ > 0 && arrived >= enough, all = arrived == size_bytes_;
  const bool awaited = fulfilled || abandoned_;
  if (fulfilled) awaited_end_ = 0;   // the reader is notified only once
  lock.unlock();
  if (awaited) changed_.notify_all();
  return all;
}

MILLRACE_INLINE void range_fetch::report_missing() {
  const std::lock_guard lock(mutex_);
  missing_ = true;
  changed_.notify_all();
}

MILLRACE_INLINE void range_fetch::fail(std::exception_ptr why) {
  const std::lock_guard lock(mutex_);
  failure_ = std::move(why);
  changed_.notify_all();
}

}}}  // namespace millrace::detail
