// Definitions for batch_output.hpp.
#pragma once

#include <millrace/deliver/batch_output.hpp>

#include <millrace/base/error.hpp>

#include <unistd.h>

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
  const std::string in_use = std::to_string(count) + (count == 1 ? " batch is" : " batches are") + " still in use, ";
  throw setup_error(fixed ? "slot " + std::to_string(*fixed % from.lease_slots()) +
                                ", which the next batch needs, is leased: " + in_use + "including this slot's"
                          : "all slots are leased: " + in_use + "so no further batch can be created",
                    "Release batches before requesting the next, raise prefetch({.batches}) or to_device({.slots}), or "
                    "set session_options::leases_released_by_other_threads");
}

MILLRACE_RARE host_batch_output::host_batch_output(std::shared_ptr<device_backend> backend, bool fixed_slots)
    : batch_output(std::move(backend)), fixed_slots_(fixed_slots) {}

MILLRACE_RARE bool host_batch_output::can_take(std::uint64_t batch, bool stop_at_epoch) const {
  return (stop_at_epoch && host_.starts_epoch(batch)) || host_.can_take(batch);
}

}}}   // namespace millrace::detail
