// Definitions for batch_lease.hpp.
#pragma once

#include <millrace/deliver/batch_lease.hpp>

#include <millrace/base/error.hpp>

#include <algorithm>
#include <new>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE batch_lease::batch_lease(std::shared_ptr<detail::batch_output> from, const detail::ready_batch& meta,
                                         stream_view stream, const detail::batch_origin& origin)
    : from_(std::move(from)), meta_(meta), origin_(origin), had_batch_(true) {
  streams_[0] = stream;
}

MILLRACE_INLINE batch_lease::batch_lease(batch_lease&& other) noexcept { *this = std::move(other); }

MILLRACE_INLINE batch_lease& batch_lease::operator=(batch_lease&& other) noexcept {
  if (this == &other) return *this;
  release();
  from_ = std::move(other.from_);
  meta_ = other.meta_;
  origin_ = other.origin_;
  streams_ = other.streams_;
  stream_count_ = other.stream_count_;
  had_batch_ = other.had_batch_;
  return *this;
}

MILLRACE_INLINE void batch_lease::throw_empty(const char* call) {
  throw setup_error(std::string(call) + " was called on an empty batch: it was moved from or released, or the run had "
                                        "ended",
                    "Use the batch before it is moved from or released");
}

MILLRACE_INLINE void batch_lease::throw_no_flags() {
  throw setup_error("the batch does not record valid or replaced rows: all rows are valid if on_damage is fail",
                    "Set session_options::on_damage to replace or mask, or batch({.pad_last = true})");
}

MILLRACE_INLINE std::span<const std::string_view> batch_lease::keys() const {
  checked("keys()");
  if (!meta_.keys)
    throw setup_error("the batch has no keys: got batch({.keys = false}), expected batch({.keys = true})",
                      "Request keys with batch<...>({.size = n, .keys = true})");
  return {meta_.keys, size()};
}

MILLRACE_INLINE std::size_t batch_lease::global_size() const {
  checked("global_size()");
  if (origin_.global_rows == detail::batch_origin::unknown)
    throw setup_error("global_size() is unknown: got bucket() on several ranks, expected batches of the same "
                      "size on all ranks",
                      "Sum size() over the ranks");
  return origin_.global_rows;
}

MILLRACE_INLINE void batch_lease::also_used_on(stream_view stream) {
  checked("also_used_on()");
  if (stream_count_ == streams_.size())
    throw setup_error("a batch is used on more than " + std::to_string(streams_.size()) + " streams",
                      "Let one stream wait for the others, and pass only that stream");
  from_->used_on(meta_.slot, stream);
  streams_[stream_count_++] = stream;
}

MILLRACE_INLINE bool batch_lease::is_used_on(stream_view stream) const {
  const std::span used = std::span(checked("is_used_on()").streams_).first(stream_count_);
  return std::any_of(used.begin(), used.end(), [&](stream_view one) { return one.handle == stream.handle; });
}

MILLRACE_INLINE void batch_lease::release() noexcept {
  if (!from_) return;
  if (from_->is_forked()) {   // locks may be owned by threads that do not exist in the child
    static_cast<void>(new (std::nothrow) std::shared_ptr<detail::batch_output>(std::move(from_)));
    return;
  }
  from_->release(meta_.slot, std::span(streams_).first(stream_count_));
  from_.reset();
}

}}   // namespace millrace
