// The devices: their number, the current one, their properties; contexts, and the functions of the driver.
#include "world.hpp"

#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <string_view>

using namespace fake_cuda::detail;

namespace {

constexpr int multiprocessors = 16, major = 9, minor = 0;

bool exists(const world& w, int device) { return device >= 0 && device < w.options.devices; }

}  // namespace

cudaError_t cudaGetDeviceCount(int* count) {
  if (count) *count = 0;
  return call("cudaGetDeviceCount", {.opens_nothing = true}, [&](world& w) {
    if (!count) return cudaErrorInvalidValue;
    *count = w.options.devices;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return call("cudaGetDevice", {.opens_nothing = true}, [&](world&) {
    if (!device) return cudaErrorInvalidValue;
    *device = this_thread().device;
    return cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  return call("cudaSetDevice", {.opens_nothing = true}, [&](world& w) {
    if (!exists(w, device)) return cudaErrorInvalidDevice;
    this_thread().chosen_device = device;
    make_current(this_thread(), w.primary_context(device));
    return cudaSuccess;
  });
}

cudaError_t cudaDriverGetVersion(int* version) {
  return call("cudaDriverGetVersion", {.without_device = true}, [&](world& w) {
    if (!version) return cudaErrorInvalidValue;
    *version = w.options.driver_version;
    return cudaSuccess;
  });
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  return call("cudaRuntimeGetVersion", {.without_device = true}, [&](world&) {
    if (!version) return cudaErrorInvalidValue;
    *version = CUDART_VERSION;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return call("cudaGetDeviceProperties", {.opens_nothing = true}, [&](world& w) {
    if (!properties) return cudaErrorInvalidValue;
    if (!exists(w, device)) return cudaErrorInvalidDevice;
    *properties = {};
    std::snprintf(properties->name, sizeof properties->name, "Fake GPU %d", device);
    properties->totalGlobalMem = w.options.device_bytes;
    properties->sharedMemPerBlock = 48 << 10;
    properties->warpSize = 32;
    properties->maxThreadsPerBlock = 1024;
    properties->major = major;
    properties->minor = minor;
    properties->multiProcessorCount = multiprocessors;
    properties->canMapHostMemory = 1;
    properties->concurrentKernels = 1;
    properties->pciBusID = device + 1;
    properties->asyncEngineCount = 2;
    properties->unifiedAddressing = 1;
    properties->l2CacheSize = 50 << 20;
    properties->maxThreadsPerMultiProcessor = 2048;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return call("cudaDeviceGetAttribute", {.opens_nothing = true}, [&](world& w) {
    if (!value) return cudaErrorInvalidValue;
    if (!exists(w, device)) return cudaErrorInvalidDevice;
    switch (attribute) {
      case cudaDevAttrMaxThreadsPerBlock:
      case cudaDevAttrMaxBlockDimX: *value = 1024; return cudaSuccess;
      case cudaDevAttrMaxGridDimX: *value = 0x7fffffff; return cudaSuccess;
      case cudaDevAttrMaxSharedMemoryPerBlock: *value = 48 << 10; return cudaSuccess;
      case cudaDevAttrWarpSize: *value = 32; return cudaSuccess;
      case cudaDevAttrMultiProcessorCount: *value = multiprocessors; return cudaSuccess;
      case cudaDevAttrPciBusId: *value = device + 1; return cudaSuccess;
      case cudaDevAttrIntegrated:
      case cudaDevAttrPciDeviceId:
      case cudaDevAttrPciDomainId: *value = 0; return cudaSuccess;
      case cudaDevAttrL2CacheSize: *value = 50 << 20; return cudaSuccess;
      case cudaDevAttrMaxThreadsPerMultiProcessor: *value = 2048; return cudaSuccess;
      case cudaDevAttrAsyncEngineCount: *value = 2; return cudaSuccess;
      case cudaDevAttrCanMapHostMemory:
      case cudaDevAttrConcurrentKernels:
      case cudaDevAttrUnifiedAddressing:
      case cudaDevAttrHostRegisterSupported: *value = 1; return cudaSuccess;
      case cudaDevAttrPageableMemoryAccessUsesHostPageTables:
        *value = w.options.host_page_tables;
        return cudaSuccess;
      case cudaDevAttrComputeCapabilityMajor: *value = major; return cudaSuccess;
      case cudaDevAttrComputeCapabilityMinor: *value = minor; return cudaSuccess;
    }
    return cudaErrorInvalidValue;
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  return call("cudaDeviceGetPCIBusId", {.opens_nothing = true}, [&](world& w) {
    if (!exists(w, device)) return cudaErrorInvalidDevice;
    if (!text || length < 13) return cudaErrorInvalidValue;
    std::snprintf(text, static_cast<std::size_t>(length), "0000:%02X:00.0", static_cast<unsigned>(device + 1) & 0xffu);
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  return call("cudaMemGetInfo", {}, [&](world& w) {
    if (!free_bytes || !total_bytes) return cudaErrorInvalidValue;
    *total_bytes = w.options.device_bytes;
    *free_bytes = w.options.device_bytes - w.allocations.bytes(memory::kind::device, this_thread().device);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return call("cudaDeviceSynchronize", {.synchronises = true}, [&](world& w) {
    const context* const current = this_thread().current;
    bool captured = false;
    for (const stream_pointer& s : w.streams) {
      if (s->in == current && s->capturing) {
        w.invalidate(*s->capturing);
        captured = true;
      }
    }
    if (captured) return cudaErrorStreamCaptureUnsupported;
    operations all = w.all_unfinished();
    std::erase_if(all, [&](const operation_pointer& op) { return op->on->in != current; });
    w.wait_for(all);
    return w.broken;
  });
}

// Contexts, and the functions of the driver that the runtime returns.
namespace fake_cuda {
namespace detail {

void make_current(thread_state& thread, const context* c) {
  thread.current = c;
  thread.device = c ? c->device : thread.chosen_device;
}

const context* world::primary_context(int device) {
  return &primary_contexts.try_emplace(device, context{.device = device}).first->second;
}

const context* world::make_context(int device) {
  return &own_contexts.emplace_back(context{.device = device, .primary = false});
}

namespace {

/// A function of the driver. Unlike the runtime, the driver does not remember errors.
template <class Body>
cudaError_t driver_call(const char* name, const Body& body) {
  const inside here;
  world& w = the_world();
  if (getpid() != w.process) return cudaErrorInitializationError;
  if (w.refuse_host_function(name)) return cudaErrorNotPermitted;
  const std::lock_guard lock(w.mutex);
  thread_state& me = this_thread();
  if (me.generation != w.generation) me = {.id = me.id, .generation = w.generation, .guards = me.guards};
  ++w.calls[name];
  if (const cudaError_t refused = w.refusal(name, {.without_device = true}); refused != cudaSuccess) return refused;
  return body(w, me);
}

cudaError_t init(unsigned) {
  return driver_call("cuInit", [](world&, thread_state&) { return cudaSuccess; });
}

cudaError_t retain_primary(void** context, int device) {
  return driver_call("cuDevicePrimaryCtxRetain", [&](world& w, thread_state&) {
    if (device < 0 || device >= w.options.devices) return cudaErrorInvalidDevice;
    *context = const_cast<detail::context*>(w.primary_context(device));
    return cudaSuccess;
  });
}

cudaError_t primary_state(int device, unsigned* flags, int* active) {
  return driver_call("cuDevicePrimaryCtxGetState", [&](world& w, thread_state&) {
    *flags = 0;
    *active = w.primary_contexts.count(device) > 0;
    return cudaSuccess;
  });
}

cudaError_t get_current(void** context) {
  return driver_call("cuCtxGetCurrent", [&](world&, thread_state& me) {
    *context = const_cast<detail::context*>(me.current);
    return cudaSuccess;
  });
}

cudaError_t push(void* context) {
  return driver_call("cuCtxPushCurrent", [&](world&, thread_state& me) {
    me.pushed.push_back(me.current);
    make_current(me, static_cast<const detail::context*>(context));
    return cudaSuccess;
  });
}

cudaError_t pop(void** context) {
  return driver_call("cuCtxPopCurrent", [&](world&, thread_state& me) {
    if (me.pushed.empty()) return cudaErrorDeviceUninitialized;
    *context = const_cast<detail::context*>(me.current);
    make_current(me, me.pushed.back());
    me.pushed.pop_back();
    return cudaSuccess;
  });
}

void* driver_function(std::string_view name) {
  if (name == "cuInit") return reinterpret_cast<void*>(&init);
  if (name == "cuDevicePrimaryCtxRetain") return reinterpret_cast<void*>(&retain_primary);
  if (name == "cuDevicePrimaryCtxGetState") return reinterpret_cast<void*>(&primary_state);
  if (name == "cuCtxGetCurrent") return reinterpret_cast<void*>(&get_current);
  if (name == "cuCtxPushCurrent") return reinterpret_cast<void*>(&push);
  if (name == "cuCtxPopCurrent") return reinterpret_cast<void*>(&pop);
  return nullptr;
}

}  // namespace
}  // namespace detail

using detail::the_world;

void* create_context(int device) {
  detail::world& w = the_world();
  const std::lock_guard lock(w.mutex);
  return const_cast<detail::context*>(w.make_context(device));
}

void set_current_context(void* context) {
  detail::driver_call("cuCtxSetCurrent", [&](detail::world&, detail::thread_state& me) {
    detail::make_current(me, static_cast<const detail::context*>(context));
    return cudaSuccess;
  });
}

void* current_context() {
  void* context = nullptr;
  detail::get_current(&context);
  return context;
}

}  // namespace fake_cuda

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned int version,
                                             unsigned long long flags, cudaDriverEntryPointQueryResult* status) {
  return call("cudaGetDriverEntryPointByVersion", {.opens_nothing = true}, [&](world&) {
    if (!symbol || !function || flags != cudaEnableDefault) return cudaErrorInvalidValue;
    *function = version >= 7'000 ? driver_function(symbol) : nullptr;
    if (status) *status = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
  });
}
