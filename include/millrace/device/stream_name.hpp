// Sets the name that profilers show for a stream.
//
//   detail::name_stream(copies_, "millrace copies");        // shown by profilers instead of "Stream 14"
//
// The call does nothing if no profiler is attached, or if MILLRACE_NVTX is not defined. Threads: any. Errors: none.
#pragma once

#include <millrace/device/stream.hpp>
#include <millrace/measure/meters/trace_range.hpp>

#ifdef MILLRACE_NVTX
#include <nvtx3/nvToolsExtCudaRt.h>
#endif

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

inline void name_stream([[maybe_unused]] stream_view stream, [[maybe_unused]] const char* name) noexcept {
#ifdef MILLRACE_NVTX
  if (trace_domain()) nvtxNameCudaStreamA(stream, name);
#endif
}

}}}   // namespace millrace::detail
