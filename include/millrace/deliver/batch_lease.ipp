// Defines what batch_lease.hpp declares.
#pragma once

#include <millrace/deliver/batch_lease.hpp>

#include <millrace/base/error.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE batch_lease::batch_lease(std::shared_ptr<batch_output> from, const ready_batch& meta,
                                         stream_view stream, const batch_origin& origin)
    : from_(std::move(from)), meta_(meta), origin_(origin) {
  streams_[0] = stream;
}

MILLRACE_INLINE batch_lease& batch_lease::operator=(batch_lease&& other) noexcept {
  if (this == &other) return *this;
  release();
  from_ = std::move(other.from_);
  meta_ = other.meta_;
  origin_ = other.origin_;
  streams_ = other.streams_;
  stream_count_ = other.stream_count_;
  return *this;
}

MILLRACE_INLINE void batch_lease::throw_no_flags() {
  throw setup_error("the batch does not say which rows are valid or replaced: by on_damage = fail all are valid",
                    "Set session_options::on_damage to replace or mask, or batch({.pad_last = true})");
}

MILLRACE_INLINE std::span<const std::string_view> batch_lease::keys() const {
  if (!from_) throw setup_error("keys() of an empty batch", "Look at them before the batch is released");
  if (!meta_.keys)
    throw setup_error("the batch has no keys: got batch({.keys = false}), expected batch({.keys = true})",
                      "Ask for them: batch<...>({.size = n, .keys = true})");
  return {meta_.keys, size()};
}

MILLRACE_INLINE std::size_t batch_lease::global_size() const {
  if (origin_.global_rows == batch_origin::unknown)
    throw setup_error("global_size() is not known: got bucket() on several ranks, expected batches of one size on "
                      "all of them",
                      "Add up size() over the ranks");
  return origin_.global_rows;
}

MILLRACE_INLINE void batch_lease::also_used_on(stream_view stream) {
  if (!from_) throw setup_error("also_used_on() of an empty batch", "Name streams before the batch is released");
  if (stream_count_ == streams_.size())
    throw setup_error("a batch is used on more than " + std::to_string(streams_.size()) + " streams",
                      "Let one of the streams wait for the others and name only that one");
  from_->used_on(meta_.slot, stream);
  streams_[stream_count_++] = stream;
}

MILLRACE_INLINE void batch_lease::release() noexcept {
  if (!from_) return;
  from_->release(meta_.slot, std::span(streams_).first(stream_count_));
  from_.reset();
}

}}}  // namespace millrace::detail
