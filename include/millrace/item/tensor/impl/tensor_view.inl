// Definitions for tensor_view.hpp.
#pragma once

#include <millrace/item/tensor/tensor_view.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE bad_element_access bad_element_access::index(const char* column, std::size_t index,
                                                             std::size_t extent) noexcept {
  bad_element_access e;
  e.add("an index of ").add_name(column).add(" is out of range: got ").add_number(index);
  e.add(", expected less than ").add_number(extent).add(". Compare it with the shape");
  return e;
}

MILLRACE_INLINE bad_element_access bad_element_access::memory(const char* column) noexcept {
  bad_element_access e;
  e.add_name(column).add(" is in GPU memory: got an element access by the host, expected by a kernel. Copy it "
                         "with to_host() of the batch first, or use to_device({.device = host_device()})");
  return e;
}

MILLRACE_INLINE bad_element_access& bad_element_access::add(const char* text) noexcept {
  while (*text && size_ + 1 < sizeof text_) text_[size_++] = *text++;
  text_[size_] = '\0';
  return *this;
}

MILLRACE_INLINE bad_element_access& bad_element_access::add_name(const char* column) noexcept {
  return *column ? add("the column ").add(column) : add("the tensor");
}

MILLRACE_INLINE bad_element_access& bad_element_access::add_number(std::size_t number) noexcept {
  char digits[24];
  std::size_t at = sizeof digits;
  digits[--at] = '\0';
  do digits[--at] = static_cast<char>('0' + number % 10);
  while ((number /= 10) > 0);
  return add(digits + at);
}

}}}   // namespace millrace::detail
