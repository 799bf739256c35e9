// What a profiler calls a stream.
//
//   detail::name_stream(copies_, "millrace copies");        // shown by the tool in place of "Stream 14"
//
// Does nothing where no tool listens. Only in builds with CUDA. Threads: any. Errors: none.
#pragma once

#include <millrace/sync/trace_range.hpp>

#ifdef MILLRACE_CUDA
#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExtCudaRt.h>

namespace millrace::inline MILLRACE_ABI::detail {

inline void name_stream(cudaStream_t stream, const char* name) noexcept {
  if (trace_domain()) nvtxNameCudaStreamA(stream, name);
}

}  // namespace millrace::inline MILLRACE_ABI::detail
#endif
