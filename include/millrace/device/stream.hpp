// A handle on a device's stream (a queue of work in order). Light: a .cu file may include it.
//
//   mr::to_device({.stream = my_cuda_stream})       // any cudaStream_t converts, and any class that converts to one
//   kernel<<<grid, block, 0, b.stream()>>>(...);    // and back
//
// On the host there are no streams: the handle is empty and work is done when the call returns. Owns nothing.
#pragma once

#include <millrace/base/version.hpp>

struct CUstream_st;   // what a cudaStream_t points to; named here so that no CUDA header is needed

namespace millrace { inline namespace MILLRACE_ABI {

/// A stream that belongs to somebody else.
struct stream_view {
  CUstream_st* handle = nullptr;   ///< null: the legacy default stream of the device

  constexpr stream_view() = default;
  constexpr stream_view(CUstream_st* stream) noexcept : handle(stream) {}
  /// A stream class of the user's, or of a library, that converts to a cudaStream_t.
  template <class Stream>
    requires requires(const Stream& s) { s.operator CUstream_st*(); }
  constexpr stream_view(const Stream& s) noexcept : handle(s.operator CUstream_st*()) {}
  stream_view(int) = delete;   // a stray 0 is no stream
  constexpr operator CUstream_st*() const noexcept { return handle; }
};

}}  // namespace millrace
