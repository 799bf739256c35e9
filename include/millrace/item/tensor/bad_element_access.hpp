// bad_element_access: thrown in debug builds (without NDEBUG) for an index out of range, and for host access to GPU
// memory.
//
//   try { labels[256] = 0; } catch (const std::exception& e) { std::puts(e.what()); }
//   // millrace: an index of the column example::label is out of range: got 256, expected less than 256. ...
//
// This class is not a millrace::error, because that would slow down the compilation of .cu files. If this exception
// leaves a callable of a flow, the run reports it as a stage_error with shard and key.
// Threads: not synchronized.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <exception>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// An element cannot be accessed: the index is out of range, or the element is in GPU memory.
class bad_element_access : public std::exception {
 public:
  /// Returns the message.
  const char* what() const noexcept override { return text_; }

  /// Returns the error of an index out of range. An empty `column` name means a tensor.
  static bad_element_access index(const char* column, std::size_t index, std::size_t extent) noexcept;
  /// Returns the error of a host access to GPU memory.
  static bad_element_access memory(const char* column) noexcept;

 private:
  bad_element_access() noexcept { add("millrace: "); }

  bad_element_access& add(const char* text) noexcept;
  bad_element_access& add_name(const char* column) noexcept;
  bad_element_access& add_number(std::size_t number) noexcept;

  char text_[512];
  std::size_t size_ = 0;
};

/// Checks an index in debug builds, except in GPU kernels, which cannot throw.
constexpr void check_index([[maybe_unused]] const char* column, [[maybe_unused]] std::size_t index,
                           [[maybe_unused]] std::size_t extent) {
#if !defined NDEBUG && !defined __CUDA_ARCH__
  if (index >= extent) throw bad_element_access::index(column, index, extent);
#endif
}

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/item/tensor/impl/bad_element_access.inl>
#endif
