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
    case cudaErrorNoDevice:
      return "No GPU is visible: see nvidia-smi and CUDA_VISIBLE_DEVICES, or use host_device()";
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
    case cudaErrorInvalidDevice:
      return "Devices are numbered from 0: see nvidia-smi and CUDA_VISIBLE_DEVICES";
    case cudaErrorInvalidResourceHandle:
      return "Check that the stream exists and belongs to the device of to_device()";
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureInvalidated:
    case cudaErrorStreamCaptureIsolation:
    case cudaErrorStreamCaptureImplicit:
    case cudaErrorCapturedEvent:
      return "A stream was being captured: get and release batches outside the capture";
    case cudaErrorCudartUnloading: return "The program is ending: destroy sessions before main() returns";
    case cudaErrorInitializationError: return "CUDA does not work in the child of a fork(): start a new process";
    default:
      return "An earlier kernel or copy of this process may be the cause; in that case start the process again; "
             "compute-sanitizer reports the kernel";
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
  check_cuda(cudaPointerGetAttributes(&place, data), "cudaPointerGetAttributes");
  if (place.type == cudaMemoryTypeDevice && place.device != ordinal)
    throw setup_error(std::string(name) + " is in the memory of GPU " + std::to_string(place.device) +
                          ", and its kernel would run on GPU " + std::to_string(ordinal),
                      "Call cudaSetDevice(device.ordinal()) before this call and before cuda_metric_sums()");
}

MILLRACE_INLINE current_device::current_device(int ordinal) : before_(current_gpu()) {
  if (before_ == ordinal) return;
  check_cuda(cudaSetDevice(ordinal), "cudaSetDevice");
  changed_ = true;
}

/// Returns whether this process has a context on the GPU, or if the driver does not report it. Only the driver has this
/// function, and Millrace does not link the driver.
MILLRACE_INLINE bool is_open(int ordinal) noexcept {
  using get_state = int (*)(int device, unsigned* flags, int* active);
  static const auto of_driver = []() noexcept -> get_state {
    void* entry = nullptr;
#if CUDART_VERSION >= 12050
    ignore_cuda(cudaGetDriverEntryPointByVersion("cuDevicePrimaryCtxGetState", &entry, 12'000, cudaEnableDefault));
#else
    ignore_cuda(cudaGetDriverEntryPoint("cuDevicePrimaryCtxGetState", &entry, cudaEnableDefault));
#endif
    return reinterpret_cast<get_state>(entry);
  }();
  unsigned flags = 0;
  int active = 1;
  return !of_driver || of_driver(ordinal, &flags, &active) != 0 || active != 0;
}

MILLRACE_INLINE current_device::~current_device() {
  if (changed_ && is_open(before_)) ignore_cuda(cudaSetDevice(before_));
}

}}}  // namespace millrace::detail
