// Provides the host as a device. The user reads each batch directly in the slot (the memory of a batch) that the
// workers filled. Nothing is copied.
//
//   auto flow = mr::from(examples) | mr::batch<&example::features>({.size = 256})
//             | mr::to_device({.device = mr::host_device()});
//   mr::session run{std::move(flow)};
//   for (auto& b : run) step(b.get<&example::features>(), b.stream());   // the stream is an empty handle
//
// Sessions and batches have the same functions as with a GPU. Threads: any. Errors: std::bad_alloc.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/device/device.hpp>
#include <millrace/device/slot_memory.hpp>

#include <cstring>

namespace millrace { inline namespace MILLRACE_ABI {

/// The common part of devices without a GPU. All memory is host memory. Every event counts as reached immediately.
class host_backend : public device_backend {
 public:
  std::string name() const override { return "host"; }
  bool leases_host_slots() const override { return true; }
  memory_kind memory() const override { return memory_kind::host; }

  void* allocate_host(std::size_t bytes) override { return detail::allocate_slot(bytes); }
  void free_host(void* memory) noexcept override { detail::free_slot(memory); }
  void* allocate_device(std::size_t bytes) override { return allocate_host(bytes); }
  void free_device(void* memory) noexcept override { free_host(memory); }

  std::unique_ptr<device_event> make_event() override { return std::make_unique<device_event>(); }
  void copy_waits_for(device_event&) override {}
  void copy_to_device(void*, const void*, std::size_t) override {}
  void record_copy(device_event&) override {}
  void record(device_event&, stream_view) override {}
  void stream_waits_for(stream_view, device_event&) override {}
  void wait(device_event&) override {}
  void copy_to_host(void* to, const void* from, std::size_t bytes, stream_view) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
};

/// Returns the host as a device. Batches are not copied; they stay in host slots.
device host_device();

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/device/impl/host.inl>
#endif
