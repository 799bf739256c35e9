// Defines a handle to a stream of a device. A stream is a queue whose work runs in order.
//
//   mr::stream_view s = my_cuda_stream;    // converts from any cudaStream_t, and from any class that converts to one
//   auto stage = mr::to_device({.stream = s});
//   cudaStream_t again = b.stream();       // converts to cudaStream_t, as in a kernel launch
//
// The header compiles quickly, so .cu files can include it.
// The host has no streams. The handle of the host is empty, and each call on the host completes its work before it
// returns.
// Lifetime: the handle owns nothing; the caller keeps the stream alive.
#pragma once

#include <millrace/base/version.hpp>

struct CUstream_st;   // cudaStream_t is a pointer to this type; declared here so that no CUDA header is needed

namespace millrace { inline namespace MILLRACE_ABI {

/// A handle to a stream; it does not own the stream.
struct stream_view {
  CUstream_st* handle = nullptr;   ///< null for the legacy default stream of the device

  constexpr stream_view() = default;
  constexpr stream_view(CUstream_st* stream) noexcept : handle(stream) {}
  /// Converts from any class that converts to cudaStream_t, such as a stream class of a library.
  template <class Stream>
    requires requires(const Stream& s) { s.operator CUstream_st*(); }
  constexpr stream_view(const Stream& s) noexcept : handle(s.operator CUstream_st*()) {}
  stream_view(int) = delete;   // a stray 0 must not compile as a stream
  constexpr operator CUstream_st*() const noexcept { return handle; }
};

}}   // namespace millrace
