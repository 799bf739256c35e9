// A handle to a device's stream, which is a queue of work in order.
//
//   mr::stream_view s = my_cuda_stream;    // converts from any cudaStream_t, and from any class that converts to one
//   auto stage = mr::to_device({.stream = s});
//   cudaStream_t again = b.stream();       // and back, as in kernel<<<grid, block, 0, b.stream()>>>(...)
//
// The header is light, so a .cu file may include it.
// The host has no streams: the handle is empty, and work is complete when the call returns.
// Lifetime: the handle owns nothing; the caller keeps the stream alive.
#pragma once

#include <millrace/base/version.hpp>

struct CUstream_st;   // the target type of cudaStream_t; declared here so that no CUDA header is needed

namespace millrace { inline namespace MILLRACE_ABI {

/// A handle to a stream; it does not own the stream.
struct stream_view {
  CUstream_st* handle = nullptr;   ///< null: the legacy default stream of the device

  constexpr stream_view() = default;
  constexpr stream_view(CUstream_st* stream) noexcept : handle(stream) {}
  /// Converts from any class of the user or a library that converts to a cudaStream_t.
  template <class Stream>
    requires requires(const Stream& s) { s.operator CUstream_st*(); }
  constexpr stream_view(const Stream& s) noexcept : handle(s.operator CUstream_st*()) {}
  stream_view(int) = delete;   // a stray 0 must not compile as a stream
  constexpr operator CUstream_st*() const noexcept { return handle; }
};

}}  // namespace millrace
