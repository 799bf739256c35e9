// Allocates over-aligned objects for containers and shared pointers, always with the aligned operator new.
//
//   struct alignas(64) line { int numbers[16]; };
//   mr::detail::aligned_vector<line> lines(8);
//   std::shared_ptr<line> one = mr::detail::make_aligned_shared<line>();
//
// With clang++ 14, -std=c++2b and libstdc++, std::allocator loses the alignment. Types with an alignment of at most 16
// bytes do not need this header.
// Errors: throws std::bad_alloc or std::bad_array_new_length. Threads: any thread.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

template <class T>
class aligned_allocator {
 public:
  using value_type = T;

  aligned_allocator() noexcept = default;
  template <class U>
  aligned_allocator(const aligned_allocator<U>&) noexcept {}   // NOLINT(*-explicit-*): containers convert

  T* allocate(std::size_t count) {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t(alignof(T))));
  }
  void deallocate(T* at, std::size_t) noexcept { ::operator delete(at, std::align_val_t(alignof(T))); }

  friend bool operator==(const aligned_allocator&, const aligned_allocator&) noexcept { return true; }
};

template <class T>
using aligned_vector = std::vector<T, aligned_allocator<T>>;

/// Like std::make_shared<T>(args...), but with the alignment that T requires.
template <class T, class... Args>
std::shared_ptr<T> make_aligned_shared(Args&&... args) {
  return std::allocate_shared<T>(aligned_allocator<T>(), std::forward<Args>(args)...);
}

}}}   // namespace millrace::detail
