// Memory calls: allocate, register, free, copy, fill, query.
#include "world.hpp"

#include <sched.h>

using namespace fake_cuda::detail;

namespace {

using memory_kind = memory::kind;

/// The kind of a range, or an error if it was freed or exceeds its allocation.
struct range {
  memory_kind what = memory_kind::pageable;
  bool wrong = false;
};

range classify(world& w, const char* name, const void* address, std::size_t bytes) {
  const memory::allocation* a = w.allocations.find(address);
  if (!a) {
    if (!w.allocations.was_freed(address)) return {};
    w.violate(std::string(name) + ": memory that was freed");
    return {.wrong = true};
  }
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(address) - a->address);
  const bool is_pageable = a->what == memory_kind::registered && w.options.host_page_tables;
  return {.what = is_pageable ? memory_kind::pageable : a->what, .wrong = bytes > a->bytes - offset};
}

bool fits(cudaMemcpyKind kind, bool to_device, bool from_device) {
  switch (kind) {
    case cudaMemcpyHostToHost: return !to_device && !from_device;
    case cudaMemcpyHostToDevice: return to_device && !from_device;
    case cudaMemcpyDeviceToHost: return !to_device && from_device;
    case cudaMemcpyDeviceToDevice: return to_device && from_device;
    case cudaMemcpyDefault: return true;
  }
  return false;
}

struct copy_request {
  const char* name;
  void* to;
  const void* from;
  std::size_t bytes;
  cudaMemcpyKind kind;
  bool synchronous;
};

cudaError_t copy(world& w, const copy_request& r, cudaStream_t handle) {
  const stream_pointer s = w.find_stream(handle);
  if (!s) return cudaErrorInvalidResourceHandle;
  if (r.kind < cudaMemcpyHostToHost || r.kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  if (r.bytes == 0) return cudaSuccess;
  if (!r.to || !r.from) return cudaErrorInvalidValue;
  const range to = classify(w, r.name, r.to, r.bytes), from = classify(w, r.name, r.from, r.bytes);
  const bool to_device = to.what == memory_kind::device, from_device = from.what == memory_kind::device;
  if (to.wrong || from.wrong || !fits(r.kind, to_device, from_device)) return cudaErrorInvalidValue;

  const work todo{.what = work::kind::copy, .to = r.to, .from = r.from, .bytes = r.bytes};
  if (s->capturing) return w.submit(*s, todo);
  if (const cudaError_t error = w.forbid_legacy(*s); error != cudaSuccess) return error;
  const bool stages = from.what == memory_kind::pageable && to_device;
  const bool waits = r.synchronous ? !stages && !(to_device && from_device)
                                   : to.what == memory_kind::pageable;
  if (!r.synchronous && (stages || waits)) w.record_wait("cudaMemcpyAsync (pageable memory)");
  work_extra extra;
  if (stages) {
    if (r.synchronous || w.options.pageable_waits) w.wait_for(w.unfinished_of(*s));
    const auto* bytes = static_cast<const std::byte*>(r.from);
    extra.staged.assign(bytes, bytes + r.bytes);
  }
  const cudaError_t error = w.submit(*s, todo, std::move(extra));
  if (error == cudaSuccess && waits) w.wait_for(w.unfinished_of(*s));
  return error != cudaSuccess ? error : w.broken;
}

cudaError_t fill(world& w, const char* name, const work& todo, cudaStream_t handle) {
  const stream_pointer s = w.find_stream(handle);
  if (!s) return cudaErrorInvalidResourceHandle;
  if (todo.bytes == 0) return cudaSuccess;
  const range to = classify(w, name, todo.to, todo.bytes);
  if (to.wrong || to.what == memory_kind::pageable) return cudaErrorInvalidValue;
  return w.submit(*s, todo);
}

memory::request of_caller(memory_kind what, std::size_t bytes) {
  const thread_state& me = this_thread();
  return {.what = what, .bytes = bytes, .device = me.device, .primary = me.current->primary, .core = sched_getcpu()};
}

cudaError_t allocate(world& w, void** result, const memory::request& r) {
  if (!result) return cudaErrorInvalidValue;
  *result = nullptr;
  if (r.bytes == 0) return cudaSuccess;
  const bool on_device = r.what == memory_kind::device;
  const std::size_t limit = on_device ? w.options.device_bytes : w.options.pinned_bytes;
  const std::size_t used = w.allocations.bytes(r.what, r.device) +
                           (on_device ? 0 : w.allocations.bytes(memory_kind::registered, r.device));
  if (r.bytes > limit || used > limit - r.bytes) return cudaErrorMemoryAllocation;
  *result = w.allocations.allocate(r);
  return *result ? cudaSuccess : cudaErrorMemoryAllocation;
}

/// Freeing waits for nothing, as the real calls need not wait. After a violation it does, so that no access faults.
cudaError_t give_back(world& w, const char* name, void* address, memory_kind what) {
  const memory::allocation* a = w.allocations.find(address);
  if (!a || a->address != address || a->what != what) {
    if (what == memory_kind::registered) return cudaErrorHostMemoryNotRegistered;
    if (w.allocations.was_freed(address)) w.violate(std::string(name) + ": freed before");
    return cudaErrorInvalidValue;
  }
  const char* const user = a->users ? "a copy in progress" : w.kernel_uses(*a) ? "an unfinished kernel" : nullptr;
  if (user) {
    w.violate(std::string(name) + ": memory of " + user);
    w.run_all();
    a = w.allocations.find(address);
  }
  if (const std::string wrong = w.allocations.free(address); !wrong.empty()) w.violate(name + (": " + wrong));
  return w.broken;
}

}  // namespace

cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned int flags) {
  return call("cudaHostAlloc", {.synchronises = true, .unsafe = true}, [&](world& w) {
    constexpr unsigned int valid_flags = cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
    if (flags & ~valid_flags) return cudaErrorInvalidValue;
    return allocate(w, memory, of_caller(memory_kind::host, bytes));
  });
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  return call("cudaMalloc", {.synchronises = true, .unsafe = true}, [&](world& w) {
    return allocate(w, memory, of_caller(memory_kind::device, bytes));
  });
}

cudaError_t cudaFreeHost(void* memory) {
  return call("cudaFreeHost", {.synchronises = true, .unsafe = true, .releases = true}, [&](world& w) {
    return memory ? give_back(w, "cudaFreeHost", memory, memory_kind::host) : cudaSuccess;
  });
}

cudaError_t cudaFree(void* memory) {
  return call("cudaFree", {.synchronises = true, .unsafe = true, .releases = true}, [&](world& w) {
    return memory ? give_back(w, "cudaFree", memory, memory_kind::device) : cudaSuccess;
  });
}

cudaError_t cudaHostRegister(void* memory, std::size_t bytes, unsigned int flags) {
  return call("cudaHostRegister", {.synchronises = true, .unsafe = true}, [&](world& w) {
    constexpr unsigned int valid_flags = cudaHostRegisterPortable | cudaHostRegisterMapped | cudaHostRegisterReadOnly;
    if (!memory || bytes == 0 || (flags & ~valid_flags)) return cudaErrorInvalidValue;
    const std::size_t used =
        w.allocations.bytes(memory_kind::host, 0) + w.allocations.bytes(memory_kind::registered, 0);
    if (bytes > w.options.pinned_bytes || used > w.options.pinned_bytes - bytes) return cudaErrorMemoryAllocation;
    const bool was_free = w.allocations.register_host(memory, of_caller(memory_kind::registered, bytes));
    return was_free ? cudaSuccess : cudaErrorHostMemoryAlreadyRegistered;
  });
}

cudaError_t cudaHostUnregister(void* memory) {
  return call("cudaHostUnregister", {.synchronises = true, .unsafe = true, .releases = true}, [&](world& w) {
    return memory ? give_back(w, "cudaHostUnregister", memory, memory_kind::registered) : cudaErrorInvalidValue;
  });
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return call("cudaMemcpy", {.synchronises = true}, [&](world& w) {
    // Uses the legacy stream, so with a capture of a blocking stream the error is the implicit dependency.
    const stream_pointer s = w.find_stream(nullptr);
    if (!s) return cudaErrorInvalidResourceHandle;
    if (const cudaError_t error = w.forbid_unordered(*s); error != cudaSuccess) return error;
    return copy(w, {"cudaMemcpy", to, from, bytes, kind, true}, nullptr);
  });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return call("cudaMemcpyAsync", {}, [&](world& w) {
    return copy(w, {"cudaMemcpyAsync", to, from, bytes, kind, false}, stream);
  });
}

cudaError_t cudaMemset(void* memory, int value, std::size_t bytes) {
  return call("cudaMemset", {}, [&](world& w) {
    const work todo{.what = work::kind::fill, .to = memory, .bytes = bytes, .value = value};
    const stream_pointer s = w.find_stream(nullptr);
    if (!s) return cudaErrorInvalidResourceHandle;
    if (const cudaError_t error = w.forbid_unordered(*s); error != cudaSuccess) return error;
    return fill(w, "cudaMemset", todo, nullptr);
  });
}

cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  return call("cudaMemsetAsync", {}, [&](world& w) {
    return fill(w, "cudaMemsetAsync", {.what = work::kind::fill, .to = memory, .bytes = bytes, .value = value}, stream);
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* memory) {
  return call("cudaPointerGetAttributes", {}, [&](world& w) {
    if (!attributes) return cudaErrorInvalidValue;
    *attributes = {};
    attributes->device = -1;
    auto* const address = const_cast<void*>(memory);
    const auto* const a = w.allocations.find(memory);
    if (!a || (a->what == memory_kind::registered && w.options.host_page_tables)) {
      attributes->hostPointer = address;
      return cudaSuccess;
    }
    if (!a->primary) return cudaErrorIncompatibleDriverContext;
    const bool on_device = a->what == memory_kind::device;
    attributes->type = on_device ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
    attributes->device = a->device;
    attributes->devicePointer = address;
    attributes->hostPointer = on_device ? nullptr : address;
    return cudaSuccess;
  });
}
