// bad_element_access: thrown in debug builds (without NDEBUG) for an index out of range and for GPU memory.
//
//   try { labels[256] = 0; } catch (const std::exception& e) { std::puts(e.what()); }
//   // millrace: an index of the column example::label is out of range: got 256, expected less than 256. ...
//
// A .cu file may include this header: it is cheap to compile. For the same reason this is no millrace::error: its
// strings would slow down every .cu file that includes a view. If it leaves a callable of a flow, it becomes a
// stage_error with shard and key.
// Threads: a value.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <exception>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// An element cannot be read or written: the index is out of range, or the memory is a GPU's.
class bad_element_access : public std::exception {
 public:
  /// Returns the message.
  const char* what() const noexcept override { return text_; }

  /// Returns the error of an index out of range. An empty `column` name means a tensor.
  static bad_element_access index(const char* column, std::size_t index, std::size_t extent) noexcept {
    bad_element_access e;
    e.add("an index of ").add_name(column).add(" is out of range: got ").add_number(index);
    e.add(", expected less than ").add_number(extent).add(". Compare it with the shape");
    return e;
  }
  /// Returns the error of a host access to GPU memory.
  static bad_element_access memory(const char* column) noexcept {
    bad_element_access e;
    e.add_name(column).add(" lies in GPU memory: got an element access by the host, expected one by a kernel. Copy it "
                           "with to_host() of the batch first, or use to_device({.device = host_device()})");
    return e;
  }

 private:
  bad_element_access() noexcept { add("millrace: "); }

  bad_element_access& add(const char* text) noexcept {
    while (*text && size_ + 1 < sizeof text_) text_[size_++] = *text++;
    text_[size_] = '\0';
    return *this;
  }
  bad_element_access& add_name(const char* column) noexcept {
    return *column ? add("the column ").add(column) : add("the tensor");
  }
  bad_element_access& add_number(std::size_t number) noexcept {
    char digits[24];
    std::size_t at = sizeof digits;
    digits[--at] = '\0';
    do digits[--at] = static_cast<char>('0' + number % 10);
    while ((number /= 10) > 0);
    return add(digits + at);
  }

  char text_[512];
  std::size_t size_ = 0;
};

/// Checks an index in debug builds. Checks nothing in a kernel, which cannot throw.
constexpr void check_index([[maybe_unused]] const char* column, [[maybe_unused]] std::size_t index,
                           [[maybe_unused]] std::size_t extent) {
#if !defined NDEBUG && !defined __CUDA_ARCH__
  if (index >= extent) throw bad_element_access::index(column, index, extent);
#endif
}

}}}  // namespace millrace::detail
