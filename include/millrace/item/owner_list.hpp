// Owns objects of one type, in a sequence.
//
//   mr::detail::owner_list<std::string> names;
//   names.push_back(mr::detail::make_owner<std::string>("a"));
//   names[0] += "b";
//   const auto first = names.extract(0);   // an owner; names is empty
//
// All types share one type of std::vector, which reduces compile time compared with std::vector<owner<T>>.
// Errors: std::bad_alloc. Threads: not thread-safe. Lifetime: the list deletes its objects.
// Cost: insert() and extract() move the pointers of all later objects.
#pragma once

#include <millrace/item/owner.hpp>

#include <cstddef>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A sequence of owned objects. An object may be null.
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
  /// If this throws, `object` still owns its object.
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
