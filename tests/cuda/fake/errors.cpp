// Errors: the last one of each thread, and their names.
#include "world.hpp"

#include <unistd.h>

using namespace fake_cuda::detail;

namespace {

struct named_error {
  cudaError_t error;
  const char* name;
  const char* text;
};

#define FAKE_CUDA_ERROR(name, text) named_error{name, #name, text}
constexpr named_error named_errors[] = {
    FAKE_CUDA_ERROR(cudaSuccess, "no error"),
    FAKE_CUDA_ERROR(cudaErrorInvalidValue, "a value that is not allowed here"),
    FAKE_CUDA_ERROR(cudaErrorMemoryAllocation, "no memory left"),
    FAKE_CUDA_ERROR(cudaErrorInitializationError, "the runtime could not begin"),
    FAKE_CUDA_ERROR(cudaErrorCudartUnloading, "the runtime is being unloaded"),
    FAKE_CUDA_ERROR(cudaErrorInvalidMemcpyDirection, "no such direction of a copy"),
    FAKE_CUDA_ERROR(cudaErrorStubLibrary, "a stub of the driver was loaded"),
    FAKE_CUDA_ERROR(cudaErrorInsufficientDriver, "the driver is too old for this runtime"),
    FAKE_CUDA_ERROR(cudaErrorDevicesUnavailable, "all devices are busy or unavailable"),
    FAKE_CUDA_ERROR(cudaErrorIncompatibleDriverContext, "not in a primary context"),
    FAKE_CUDA_ERROR(cudaErrorNoDevice, "no device"),
    FAKE_CUDA_ERROR(cudaErrorInvalidDevice, "no device has this number"),
    FAKE_CUDA_ERROR(cudaErrorDeviceUninitialized, "no context"),
    FAKE_CUDA_ERROR(cudaErrorNoKernelImageForDevice, "no kernel was built for this device"),
    FAKE_CUDA_ERROR(cudaErrorECCUncorrectable, "memory error that could not be corrected"),
    FAKE_CUDA_ERROR(cudaErrorUnsupportedPtxVersion, "the kernel is newer than the driver"),
    FAKE_CUDA_ERROR(cudaErrorOperatingSystem, "the operating system refused"),
    FAKE_CUDA_ERROR(cudaErrorInvalidResourceHandle, "no such handle here"),
    FAKE_CUDA_ERROR(cudaErrorIllegalState, "not in a state for this call"),
    FAKE_CUDA_ERROR(cudaErrorNotReady, "not done yet"),
    FAKE_CUDA_ERROR(cudaErrorIllegalAddress, "a kernel or copy used a wrong address"),
    FAKE_CUDA_ERROR(cudaErrorLaunchOutOfResources, "the launch needs more than there is"),
    FAKE_CUDA_ERROR(cudaErrorLaunchTimeout, "a kernel ran too long"),
    FAKE_CUDA_ERROR(cudaErrorContextIsDestroyed, "the context was destroyed"),
    FAKE_CUDA_ERROR(cudaErrorAssert, "an assertion failed in a kernel"),
    FAKE_CUDA_ERROR(cudaErrorHostMemoryAlreadyRegistered, "the memory is registered already"),
    FAKE_CUDA_ERROR(cudaErrorHostMemoryNotRegistered, "the memory is not registered"),
    FAKE_CUDA_ERROR(cudaErrorMisalignedAddress, "a kernel used an address that is not aligned"),
    FAKE_CUDA_ERROR(cudaErrorLaunchFailure, "a kernel failed"),
    FAKE_CUDA_ERROR(cudaErrorNotPermitted, "not permitted here"),
    FAKE_CUDA_ERROR(cudaErrorNotSupported, "not supported here"),
    FAKE_CUDA_ERROR(cudaErrorSystemNotReady, "the system is not ready"),
    FAKE_CUDA_ERROR(cudaErrorSystemDriverMismatch, "two parts of the driver do not fit"),
    FAKE_CUDA_ERROR(cudaErrorCompatNotSupportedOnDevice, "no forward compatibility on this device"),
    FAKE_CUDA_ERROR(cudaErrorStreamCaptureUnsupported, "not possible while a stream is captured"),
    FAKE_CUDA_ERROR(cudaErrorStreamCaptureInvalidated, "an earlier call invalidated the capture"),
    FAKE_CUDA_ERROR(cudaErrorStreamCaptureMerge, "two captures would become one"),
    FAKE_CUDA_ERROR(cudaErrorStreamCaptureUnmatched, "the capture did not begin in this stream"),
    FAKE_CUDA_ERROR(cudaErrorStreamCaptureUnjoined, "a stream of the capture was not joined"),
    FAKE_CUDA_ERROR(cudaErrorStreamCaptureIsolation, "the capture would depend on work outside"),
    FAKE_CUDA_ERROR(cudaErrorStreamCaptureImplicit, "the legacy stream would depend on a capture"),
    FAKE_CUDA_ERROR(cudaErrorCapturedEvent, "the event was recorded in a capture"),
    FAKE_CUDA_ERROR(cudaErrorStreamCaptureWrongThread, "another thread began the capture"),
    FAKE_CUDA_ERROR(cudaErrorUnknown, "unknown error"),
};
#undef FAKE_CUDA_ERROR

const named_error* find(cudaError_t error) {
  for (const named_error& e : named_errors) {
    if (e.error == error) return &e;
  }
  return nullptr;
}

cudaError_t last_error(const char* name, bool clear) {
  const inside here;
  // Not through call(), because it neither sets an error nor fails.
  world& w = the_world();
  thread_state& me = this_thread();
  if (getpid() != w.process) return cudaErrorInitializationError;
  if (w.refuse_host_function(name)) return cudaErrorNotPermitted;
  const std::lock_guard lock(w.mutex);
  ++w.calls[name];
  if (w.unloaded) return cudaErrorCudartUnloading;
  if (w.broken != cudaSuccess) return w.broken;
  if (me.generation != w.generation) return cudaSuccess;
  const cudaError_t error = me.last_error;
  if (clear) me.last_error = cudaSuccess;
  return error;
}

}  // namespace

cudaError_t cudaGetLastError() { return last_error("cudaGetLastError", true); }
cudaError_t cudaPeekAtLastError() { return last_error("cudaPeekAtLastError", false); }

const char* cudaGetErrorName(cudaError_t error) {
  const named_error* e = find(error);
  return e ? e->name : "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  const named_error* e = find(error);
  return e ? e->text : "unrecognized error code";
}
