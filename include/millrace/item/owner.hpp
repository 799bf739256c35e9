// Owns one object, like std::unique_ptr, for the private parts of this library.
//
//   mr::detail::owner<std::pair<int, int>> ends = mr::detail::make_owner<std::pair<int, int>>(1, 2);
//   ends->first = 0;
//   ends = std::make_unique<std::pair<int, int>>(3, 4);   // receives the object of a std::unique_ptr
//
// std::unique_ptr<T> instantiates many more templates for each T. In total, they would add about 13 ms to the
// compilation of each file that includes this library.
// Errors: none. Threads: not thread-safe. Lifetime: the owner deletes its object.
#pragma once

#include <millrace/base/version.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Owns an object that `new` created, or nothing. `Deleter` must have no state.
template <class T, class Deleter = std::default_delete<T>>
class owner {
 public:
  owner() = default;
  owner(std::nullptr_t) noexcept {}
  explicit owner(T* object) noexcept : object_(object) {}
  owner(owner&& other) noexcept : object_(other.release()) {}
  /// Accepts the owner, or the std::unique_ptr, of an object of a derived class.
  template <class Other>
    requires std::convertible_to<decltype(std::declval<Other&>().release()), T*>
  owner(Other other) noexcept : object_(other.release()) {}
  owner& operator=(owner&& other) noexcept {
    reset(other.release());
    return *this;
  }
  ~owner() {
    if (object_) Deleter()(object_);
  }

  /// Returns the object. The caller must delete it.
  T* release() noexcept { return std::exchange(object_, nullptr); }
  /// Deletes the object and owns `object` instead.
  void reset(T* object = nullptr) noexcept {
    T* const old = std::exchange(object_, object);
    if (old) Deleter()(old);
  }

  T* get() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  T* operator->() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};

/// Creates an object and its owner.
template <class T, class... Args>
owner<T> make_owner(Args&&... args) {
  return owner<T>(new T(std::forward<Args>(args)...));
}

template <class T>
MILLRACE_RARE void delete_object(void* object) noexcept {
  delete static_cast<T*>(object);
}

/// Like std::make_shared, but with one more allocation and a third of its compile time: all types share one type of
/// control block. T must not derive from std::enable_shared_from_this.
template <class T, class... Args>
std::shared_ptr<T> make_shared_object(Args&&... args) {
  T* const object = new T(std::forward<Args>(args)...);
  return std::shared_ptr<T>(std::shared_ptr<void>(static_cast<void*>(object), &delete_object<T>), object);
}

}}}   // namespace millrace::detail
