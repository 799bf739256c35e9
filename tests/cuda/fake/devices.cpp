// The devices: their number, the current one, their properties.
#include "world.hpp"

#include <algorithm>
#include <cstdio>

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
