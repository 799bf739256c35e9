// Converts errors of the CUDA runtime to errors with a hint, and saves and restores the calling thread's CUDA state.
//
//   detail::check_cuda(cudaMemcpyAsync(...), "cudaMemcpyAsync");     // io_error unless cudaSuccess
//   const detail::gpu_context gpu = detail::context_of(1);
//   const detail::current_context here(gpu);                         // until the end of the scope
//   if (detail::is_capturing(stream)) ...                            // a stream of the current device
//
// If a CUDA call inside Millrace fails, Millrace clears the runtime's "last error". Therefore the user's own checks do
// not report this error.
// Threads: any; a `current_context` belongs to one thread.
#pragma once

#include <millrace/base/error.hpp>

#if !__has_include(<cuda_runtime_api.h>)
#error "millrace: MILLRACE_CUDA is set, but cuda_runtime_api.h is missing: install the CUDA toolkit, or add its -I flag"
#endif
#include <cuda_runtime_api.h>

#include <optional>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

std::string cuda_hint(cudaError_t code);

void check_cuda(cudaError_t result, const char* call);

/// Drops an error that occurs in a destructor, which cannot report errors. The usual cause is that the runtime has
/// already shut down.
void ignore_cuda(cudaError_t result) noexcept;

/// Returns the stream, or the legacy stream for a null handle. In a program built with --default-stream per-thread, the
/// CUDA runtime itself would use the calling thread's own stream for a null handle.
inline cudaStream_t named_stream(cudaStream_t stream) noexcept { return stream ? stream : cudaStreamLegacy; }

/// Returns true if the stream cannot execute new work now: the work would become part of a graph, or would invalidate a
/// capture. The query does not disturb a capture.
bool is_capturing(cudaStream_t stream);

/// A GPU and the context in which Millrace uses it. Streams, events and memory belong to a context.
struct gpu_context {
  int ordinal = 0;
  void* handle = nullptr;   ///< CUcontext
};

/// Returns the context for a GPU: the calling thread's current context if it is on this GPU, otherwise the GPU's
/// primary context. The CUDA runtime uses the primary context by default. Opens no other GPU. The primary context
/// remains open until the process ends.
gpu_context context_of(int ordinal);

/// Sets the context of the calling thread until the end of the scope. The destructor restores the previous state. Costs
/// about 0.3 us if the context changes.
class current_context {
 public:
  explicit current_context(const gpu_context& gpu);
  current_context(const current_context&) = delete;
  current_context& operator=(const current_context&) = delete;
  ~current_context();

 private:
  bool pushed_ = false;
};

/// Sets the context of the calling thread until this thread ends. Only threads that Millrace started call this
/// function.
void enter_context(const gpu_context& gpu);

/// A default stream belongs to the current context of the calling thread. Throws setup_error if `stream` is a default
/// stream, and the current context is not gpu.handle but another context of the same GPU.
void check_default_stream(cudaStream_t stream, const gpu_context& gpu);

/// Returns the current device of the calling thread.
int current_gpu();

/// Throws setup_error if `data` is in the memory of another GPU than `ordinal`. `name` is the name of the data in the
/// message. Memory from a context that is not primary is not checked. Costs about 0.3 us.
void check_gpu(const void* data, std::string_view name, int ordinal);

/// Sets the relaxed capture mode for the calling thread until the end of the scope. During a capture on another thread,
/// CUDA forbids some calls. In relaxed mode, these calls do not invalidate the capture.
class capture_tolerant {
 public:
  capture_tolerant() { check_cuda(cudaThreadExchangeStreamCaptureMode(&mode_), "cudaThreadExchangeStreamCaptureMode"); }
  capture_tolerant(const capture_tolerant&) = delete;
  capture_tolerant& operator=(const capture_tolerant&) = delete;
  ~capture_tolerant() { ignore_cuda(cudaThreadExchangeStreamCaptureMode(&mode_)); }

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

/// Destructors use this function to run `call` without throwing. If possible, the context of `gpu` is current during
/// the call.
template <class Call>
void ignore_cuda_error(const gpu_context& gpu, Call&& call) noexcept {
  std::optional<current_context> here;
  std::optional<capture_tolerant> now;
  try {
    here.emplace(gpu);
    now.emplace();
  } catch (...) {
    // The runtime has shut down or the device has failed. The call below may still free memory.
  }
  ignore_cuda(call());
}

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/device/impl/cuda_error.inl>
#endif
