// Defines what device_gaps.hpp declares.
#pragma once

#include <millrace/deliver/device_gaps.hpp>

#include <optional>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE void device_gaps::allocate(std::shared_ptr<device_backend> backend, std::size_t max_under_way) {
  backend_ = std::move(backend);
  for (std::size_t i = 0; i < max_under_way; ++i) {
    pair p{backend_->make_timed_event(), backend_->make_timed_event()};
    if (!p.from || !p.to) return;
    ring_.push_back(std::move(p));
  }
  counts_ = !ring_.empty();
}

MILLRACE_INLINE void device_gaps::released(stream_view stream) {
  const std::lock_guard lock(mutex_);
  if (!counts_ || next_ - first_ == ring_.size()) return;
  backend_->record(*at(next_).from, stream);
  begun_ = true;
}

MILLRACE_INLINE void device_gaps::taken(stream_view stream) {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(begun_, false)) return;
  backend_->record(*at(next_).to, stream);
  ++next_;
}

MILLRACE_INLINE void device_gaps::pause() noexcept {
  const std::lock_guard lock(mutex_);
  begun_ = false;
}

MILLRACE_INLINE void device_gaps::collect() const noexcept {
  const std::lock_guard lock(mutex_);
  try {
    for (; first_ < next_; ++first_) {
      const std::optional<std::uint64_t> gap = backend_->elapsed_ns(*at(first_).from, *at(first_).to);
      if (!gap) return;
      sum_ns_ += *gap;
    }
  } catch (...) {
    counts_ = false;
    first_ = next_;
  }
}

MILLRACE_INLINE void device_gaps::add_to(flow_figures& f) const {
  collect();
  const std::lock_guard lock(mutex_);
  if (counts_) f.device_gap_ns = sum_ns_;
}

}}}  // namespace millrace::detail
