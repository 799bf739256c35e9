// Definitions for batch_lease.hpp.
#pragma once

#include <millrace/deliver/batch_lease.hpp>

#include <millrace/base/error.hpp>

#include <unistd.h>

#include <algorithm>
#include <new>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE batch_output::batch_output(std::shared_ptr<device_backend> backend)
    : backend_(std::move(backend)), process_(getpid()) {}

MILLRACE_RARE bool batch_output::is_forked() const noexcept { return getpid() != process_; }

MILLRACE_RARE batch_output::~batch_output() {
  host_.allow_access_to_all();
  for (void* memory : host_memory_) backend_->free_host(memory);
}

MILLRACE_RARE std::string batch_output::waits(std::uint64_t) const {
  return "slots: " + std::to_string(ready()) + " batches ready, " + std::to_string(leased()) + " of " +
         std::to_string(lease_slots()) + " leased";
}

MILLRACE_RARE void batch_output::set_listener(space_listener* listener) noexcept {
  const std::lock_guard lock(listener_mutex_);
  listener_ = listener;
}

MILLRACE_RARE void batch_output::allocate_host(const memory& needed, bool fixed) {
  batch_ring::options o{
      .rows = needed.rows, .memory = {}, .slot_bytes = needed.batch_bytes, .fixed = fixed, .keys = needed.keys};
  for (std::size_t i = 0; i < needed.host_slots; ++i) {
    host_memory_.push_back(backend_->allocate_host(needed.batch_bytes));
    o.memory.push_back(static_cast<std::byte*>(host_memory_.back()));
  }
  host_.start(o);
}

MILLRACE_RARE void batch_output::free_host_slot(std::size_t slot) noexcept {
  host_.free(slot);
  const std::lock_guard lock(listener_mutex_);
  if (listener_) listener_->space_freed();
}

MILLRACE_RARE void throw_all_leased(const batch_output& from, std::optional<std::uint64_t> fixed) {
  const std::size_t count = from.leased();
  const std::string in_use = std::to_string(count) + (count == 1 ? " batch is" : " batches are") + " still in use";
  throw setup_error(
      fixed ? "slot " + std::to_string(*fixed % from.lease_slots()) +
                  ", which the next batch needs, is leased: the batch in this slot is still in use (in total, " +
                  in_use + ")"
            : "all slots are leased: " + in_use + ", so no further batch can be created",
      "Release batches before you request the next batch, raise prefetch({.batches}), raise to_device({.slots}), or "
      "set session_options::leases_released_by_other_threads");
}

MILLRACE_RARE host_batch_output::host_batch_output(std::shared_ptr<device_backend> backend, bool fixed_slots)
    : batch_output(std::move(backend)), fixed_slots_(fixed_slots) {}

MILLRACE_RARE bool host_batch_output::can_take(std::uint64_t batch, bool stop_at_epoch) const {
  return (stop_at_epoch && host_.starts_epoch(batch)) || host_.can_take(batch);
}

}}}   // namespace millrace::detail

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
  throw setup_error(std::string(call) + " was called on an empty batch: it was moved from, it was released, or the run "
                                        "ended",
                    "Use the batch before it is moved from or released");
}

MILLRACE_INLINE void batch_lease::throw_no_flags() {
  throw setup_error(
      "the batch has no valid() and replaced() flags: without .on_damage and .pad_last, all rows are valid",
      "Set session_options::on_damage to replace or mask, or set .pad_last of batch()");
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
                      "Let one stream wait for the others, and pass only that stream to also_used_on()");
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
