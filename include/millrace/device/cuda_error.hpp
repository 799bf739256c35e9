// Turns errors of the CUDA runtime into errors with a hint, and saves and restores the calling thread's CUDA state.
//
//   detail::check_cuda(cudaMemcpyAsync(...), "cudaMemcpyAsync");     // io_error unless cudaSuccess
//   const detail::current_device here(1);                            // until the end of the scope
//   if (detail::is_capturing(stream)) ...                            // a stream of the current device
//
// An error of Millrace's own call is removed from the runtime's "last error". So the user's own checks do not find it.
// Threads: any; a `current_device` belongs to one thread.
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

/// Drops an error in a destructor, which cannot report it. The usual cause is a runtime that has already shut down.
inline void ignore_cuda(cudaError_t result) noexcept {
  if (result != cudaSuccess) cudaGetLastError();
}

/// Returns the stream, or the legacy stream for a null handle. In a program built with --default-stream per-thread, the
/// runtime takes a null handle for the calling thread's own stream. Millrace means the legacy stream on every thread.
/// The per-thread stream is ordered with the legacy stream, like all blocking streams.
inline cudaStream_t named_stream(cudaStream_t stream) noexcept { return stream ? stream : cudaStreamLegacy; }

/// Returns whether work queued in the stream now would go into a graph or invalidate a capture. The legacy stream is
/// never captured, but its work would have to wait for a captured stream. The query disturbs neither of them.
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

/// Makes a device current for the calling thread until the end of the scope, then restores the thread's own device.
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

/// Sets the relaxed capture mode for the calling thread until the end of the scope. Calls that are forbidden during a
/// capture elsewhere in the process then do not invalidate that capture.
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
