// Definitions for cuda_error.hpp.
#pragma once

#include <millrace/device/cuda_error.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::string cuda_hint(cudaError_t code) {
  switch (code) {
    case cudaErrorMemoryAllocation:
      return "Use a smaller batch, or fewer slots in to_device({.slots}) or prefetch({.batches}). If the allocator of "
             "a framework owns the rest of the GPU's memory, create the session before the model";
    case cudaErrorInsufficientDriver:
      return "The driver is older than the CUDA runtime that this program was built with: update the driver, or build "
             "with an older toolkit";
    case cudaErrorNoDevice: return "No GPU is visible: see nvidia-smi and CUDA_VISIBLE_DEVICES, or use host_device()";
    case cudaErrorDevicesUnavailable:
      return "Another process uses the GPU exclusively: see the processes and the compute mode in nvidia-smi -q";
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
      return "Compile the .cu files for this GPU: nvcc -arch=native, or CMAKE_CUDA_ARCHITECTURES=native";
    case cudaErrorECCUncorrectable:
      return "The GPU's memory is faulty: reset the GPU or use another one, and resume from the last checkpoint";
    case cudaErrorSystemNotReady:
      return "Start the fabric manager (systemctl start nvidia-fabricmanager), or wait until it has started";
    case cudaErrorSystemDriverMismatch:
      return "The driver was updated while its old kernel module is loaded: reboot the machine";
    case cudaErrorCompatNotSupportedOnDevice:
      return "This GPU does not support the package cuda-compat: remove the package, or update the driver";
    case cudaErrorInvalidDevice: return "Devices are numbered from 0: see nvidia-smi and CUDA_VISIBLE_DEVICES";
    case cudaErrorInvalidResourceHandle: return "Check that the stream exists and belongs to the device of to_device()";
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureInvalidated:
    case cudaErrorStreamCaptureIsolation:
    case cudaErrorStreamCaptureImplicit:
    case cudaErrorCapturedEvent: return "A stream was being captured: get and release batches outside the capture";
    case cudaErrorCudartUnloading: return "The program is ending: destroy sessions before main() returns";
    case cudaErrorInitializationError: return "CUDA does not work in the child of a fork(): start a new process";
    default:
      return "An earlier kernel or copy of this process may have failed: start the process again, and run "
             "compute-sanitizer to find the kernel";
  }
}

MILLRACE_INLINE void check_cuda(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return;
  cudaGetLastError();
  throw io_error(std::string(call) + " failed: " + cudaGetErrorName(result) + ", " + cudaGetErrorString(result),
                 cuda_hint(result));
}

MILLRACE_INLINE void ignore_cuda(cudaError_t result) noexcept {
  if (result != cudaSuccess) cudaGetLastError();
}

MILLRACE_INLINE bool is_capturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t result = cudaStreamIsCapturing(named_stream(stream), &status);
  if (result == cudaErrorStreamCaptureImplicit) {
    ignore_cuda(result);
    return true;
  }
  check_cuda(result, "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

MILLRACE_INLINE int current_gpu() {
  int ordinal = 0;
  check_cuda(cudaGetDevice(&ordinal), "cudaGetDevice");
  return ordinal;
}

MILLRACE_INLINE void check_gpu(const void* data, std::string_view name, int ordinal) {
  cudaPointerAttributes place{};
  const cudaError_t result = cudaPointerGetAttributes(&place, data);
  if (result == cudaErrorIncompatibleDriverContext) return ignore_cuda(result);
  check_cuda(result, "cudaPointerGetAttributes");
  if (place.type == cudaMemoryTypeDevice && place.device != ordinal)
    throw setup_error(std::string(name) + " is in the memory of GPU " + std::to_string(place.device) +
                          ", but the kernel that uses it would run on GPU " + std::to_string(ordinal),
                      "Call cudaSetDevice(device.ordinal()) before this call and before cuda_metric_sums()");
}

/// Functions of the driver without an equivalent in the runtime. Millrace does not link the driver. Its error codes are
/// those of the runtime.
struct cuda_driver {
  cudaError_t (*init)(unsigned flags);
  cudaError_t (*retain_primary)(void** context, int device);
  cudaError_t (*get_current)(void** context);
  cudaError_t (*push)(void* context);
  cudaError_t (*pop)(void** context);
};

template <class Function>
void find_in_driver(const char* name, Function& function) {
  void* entry = nullptr;
#if CUDART_VERSION >= 12050
  check_cuda(cudaGetDriverEntryPointByVersion(name, &entry, 12'000, cudaEnableDefault),
             "cudaGetDriverEntryPointByVersion");
#else
  check_cuda(cudaGetDriverEntryPoint(name, &entry, cudaEnableDefault), "cudaGetDriverEntryPoint");
#endif
  if (!entry) throw io_error("the driver has no function " + std::string(name), cuda_hint(cudaErrorInsufficientDriver));
  function = reinterpret_cast<Function>(entry);
}

MILLRACE_INLINE const cuda_driver& the_driver() {
  static const cuda_driver driver = [] {
    cuda_driver d{};
    find_in_driver("cuInit", d.init);
    find_in_driver("cuDevicePrimaryCtxRetain", d.retain_primary);
    find_in_driver("cuCtxGetCurrent", d.get_current);
    find_in_driver("cuCtxPushCurrent", d.push);
    find_in_driver("cuCtxPopCurrent", d.pop);
    return d;
  }();
  return driver;
}

/// Returns the calling thread's current context; null if it has none.
MILLRACE_INLINE void* calling_cuda_context() {
  void* context = nullptr;
  check_cuda(the_driver().get_current(&context), "cuCtxGetCurrent");
  return context;
}

MILLRACE_INLINE gpu_context context_of(int ordinal) {
  check_cuda(the_driver().init(0), "cuInit");
  if (void* const current = calling_cuda_context(); current && current_gpu() == ordinal) return {ordinal, current};
  gpu_context gpu{.ordinal = ordinal};
  check_cuda(the_driver().retain_primary(&gpu.handle, ordinal), "cuDevicePrimaryCtxRetain");
  return gpu;
}

MILLRACE_INLINE current_context::current_context(const gpu_context& gpu) {
  if (calling_cuda_context() == gpu.handle) return;
  check_cuda(the_driver().push(gpu.handle), "cuCtxPushCurrent");
  pushed_ = true;
}

MILLRACE_INLINE current_context::~current_context() {
  void* context = nullptr;
  if (pushed_) ignore_cuda(the_driver().pop(&context));
}

MILLRACE_INLINE void enter_context(const gpu_context& gpu) {
  check_cuda(the_driver().push(gpu.handle), "cuCtxPushCurrent");
}

MILLRACE_INLINE void check_default_stream(cudaStream_t stream, const gpu_context& gpu) {
  if (stream && stream != cudaStreamLegacy && stream != cudaStreamPerThread) return;
  void* const current = calling_cuda_context();
  if (current && current != gpu.handle && current_gpu() == gpu.ordinal)
    throw setup_error(
        "the default stream belongs to the thread's current context, but the device was created in a "
        "different context",
        "Create the device while the CUDA context of the training step is current, or use only one CUDA context");
}

}}}   // namespace millrace::detail
