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
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Owns an object that `new` created, or nothing. `Deleter` must have no state.
template <class T, class Deleter = std::default_delete<T>>
class owner {
 public:
  owner() = default;
  owner(std::nullptr_t) noexcept {}
  explicit owner(T* object) noexcept : object_(object) {}
  owner(owner&& other) noexcept : object_(other.release()) {}
  /// Receives the object of another owner or of a std::unique_ptr. The object may have a class derived from T.
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
  /// Deletes the owned object. From then on, owns `object`.
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
MILLRACE_RARE owner<T> make_owner(Args&&... args) {
  return owner<T>(new T(std::forward<Args>(args)...));
}

template <class T>
MILLRACE_RARE void delete_object(void* object) noexcept {
  delete static_cast<T*>(object);
}

/// Like std::make_shared, but needs one more allocation, and only a third of the compile time, because all types share
/// one type of control block. T must not derive from std::enable_shared_from_this.
template <class T, class... Args>
MILLRACE_RARE std::shared_ptr<T> make_shared_object(Args&&... args) {
  T* const object = new T(std::forward<Args>(args)...);
  return std::shared_ptr<T>(std::shared_ptr<void>(static_cast<void*>(object), &delete_object<T>), object);
}

// Owns objects of one type, in a sequence.
//
//   mr::detail::owner_list<std::string> names;
//   names.push_back(mr::detail::make_owner<std::string>("a"));
//   names[0] += "b";
//   const auto first = names.extract(0);   // an owner; names is empty
//
// The lists of all types use std::vector<void*>. This compiles faster than a std::vector<owner<T>> for each T.
// Errors: std::bad_alloc. Threads: not thread-safe. Lifetime: the list deletes its objects.
// Cost: insert() and extract() move the pointers of all later objects.

/// A sequence of owned objects. An entry may be null.
template <class T>
class owner_list {
 public:
  owner_list() = default;
  owner_list(owner_list&& other) noexcept { objects_.swap(other.objects_); }
  owner_list& operator=(owner_list&& other) noexcept {
    objects_.swap(other.objects_);
    return *this;
  }
  MILLRACE_RARE ~owner_list() {
    for (void* object : objects_) delete static_cast<T*>(object);
  }

  void push_back(owner<T> object) {
    objects_.push_back(object.get());
    object.release();
  }
  /// Replaces the last object.
  void set_last(owner<T> object) noexcept {
    delete get(objects_.size() - 1);
    objects_.back() = object.release();
  }
  /// If insert() throws, `object` still owns its object.
  void insert(std::size_t index, owner<T>&& object) {
    objects_.insert(objects_.begin() + static_cast<std::ptrdiff_t>(index), object.get());
    object.release();
  }
  owner<T> extract(std::size_t index) noexcept {
    owner<T> object(get(index));
    objects_.erase(objects_.begin() + static_cast<std::ptrdiff_t>(index));
    return object;
  }

  bool empty() const noexcept { return objects_.empty(); }
  std::size_t size() const noexcept { return objects_.size(); }
  T* get(std::size_t index) const noexcept { return static_cast<T*>(objects_[index]); }
  T& operator[](std::size_t index) const noexcept { return *get(index); }

 private:
  std::vector<void*> objects_;
};

}}}   // namespace millrace::detail
