// What the CUDA runtime answers, turned into errors that say what to do; and the calling thread's state, borrowed.
//
//   detail::check_cuda(cudaMemcpyAsync(...), "cudaMemcpyAsync");     // io_error unless cudaSuccess
//   const detail::current_device here(1);                            // until the end of the scope
//   if (detail::is_capturing(stream)) ...                            // of the current device
//
// An error of ours is taken off the runtime's "last error" again, so that the user's own checks do not find it there.
// Threads: any; `current_device` belongs to one.
#pragma once

#include <millrace/base/error.hpp>

#if !__has_include(<cuda_runtime_api.h>)
#error "millrace: MILLRACE_CUDA is set, and the CUDA toolkit is not installed, or not where -I looks"
#endif
#include <cuda_runtime_api.h>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

inline std::string cuda_hint(cudaError_t code) {
  switch (code) {
    case cudaErrorMemoryAllocation:
      return "Use a smaller batch, or fewer slots in to_device({.slots}) or prefetch({.batches})";
    case cudaErrorInsufficientDriver:
      return "The driver is older than the CUDA runtime that this program was built with: update the driver, or build "
             "with an older toolkit";
    case cudaErrorNoDevice:
      return "No GPU is visible: see nvidia-smi and CUDA_VISIBLE_DEVICES, or use host_device()";
    case cudaErrorInvalidDevice:
      return "Devices count from 0: see nvidia-smi and CUDA_VISIBLE_DEVICES";
    case cudaErrorInvalidResourceHandle:
      return "Is the stream alive, and does it belong to the device given to to_device()?";
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureInvalidated:
    case cudaErrorStreamCaptureIsolation:
    case cudaErrorStreamCaptureImplicit:
    case cudaErrorCapturedEvent:
      return "A stream was being captured: get and release batches outside the capture";
    case cudaErrorCudartUnloading: return "The program is ending: destroy sessions before main() returns";
    case cudaErrorInitializationError: return "After fork() CUDA does not work in the child: start a new process";
    default:
      return "This may stem from an earlier kernel or copy of this process, which then has to be started again; "
             "compute-sanitizer names the culprit";
  }
}

inline void check_cuda(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return;
  cudaGetLastError();
  throw io_error(std::string(call) + " failed: " + cudaGetErrorName(result) + ", " + cudaGetErrorString(result),
                 cuda_hint(result));
}

/// For destructors: what fails there cannot be told to anybody, least of all that the runtime is already gone.
inline void ignore_cuda(cudaError_t result) noexcept {
  if (result != cudaSuccess) cudaGetLastError();
}

/// In a program built with --default-stream per-thread the runtime takes a null handle for the calling thread's own
/// stream. Ours is the legacy one, whoever calls: that stream, like all blocking ones, is in order with it.
inline cudaStream_t named_stream(cudaStream_t stream) noexcept { return stream ? stream : cudaStreamLegacy; }

/// Whether work that is put into the stream now would go into a graph, or spoil one: the legacy stream is no part of a
/// capture, but would have to wait for the stream that is captured. Asking harms neither.
inline bool is_capturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t result = cudaStreamIsCapturing(named_stream(stream), &status);
  if (result == cudaErrorStreamCaptureImplicit) {
    ignore_cuda(result);
    return true;
  }
  check_cuda(result, "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

/// Makes a device current for the calling thread, and gives the thread its own back.
class current_device {
 public:
  explicit current_device(int ordinal) {
    check_cuda(cudaGetDevice(&before_), "cudaGetDevice");
    if (before_ == ordinal) return;
    check_cuda(cudaSetDevice(ordinal), "cudaSetDevice");
    changed_ = true;
  }
  current_device(const current_device&) = delete;
  current_device& operator=(const current_device&) = delete;
  ~current_device() {
    if (changed_) ignore_cuda(cudaSetDevice(before_));
  }

 private:
  int before_ = 0;
  bool changed_ = false;
};

/// Until the end of the scope, calls of this thread that a capture elsewhere in the process forbids do no harm to it.
class capture_tolerant {
 public:
  capture_tolerant() { check_cuda(cudaThreadExchangeStreamCaptureMode(&mode_), "cudaThreadExchangeStreamCaptureMode"); }
  capture_tolerant(const capture_tolerant&) = delete;
  capture_tolerant& operator=(const capture_tolerant&) = delete;
  ~capture_tolerant() { ignore_cuda(cudaThreadExchangeStreamCaptureMode(&mode_)); }

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}}}  // namespace millrace::detail
