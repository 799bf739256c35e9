// item_or_error: an item, or why there is none, or neither, in the room of the larger one and a byte.
//
//   mr::detail::item_or_error<mr::record> read = reader.next();   // from an item, an optional item, or an error
//   if (!read && read.error()) std::rethrow_exception(read.error());
//   mr::record r = std::move(*read);
//   read.reset();                                                 // neither
//
// As a [[no_unique_address]] member it lets the next members lie in its last bytes.
// Errors: those of the item's constructors. Threads: as the item.
#pragma once

#include <millrace/base/version.hpp>

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Holds a T, an error, or nothing.
template <class T>
class item_or_error {
 public:
  item_or_error() noexcept {}
  item_or_error(T item) { emplace(std::move(item)); }
  item_or_error(std::optional<T> item) {
    if (item) emplace(std::move(*item));
  }
  item_or_error(std::exception_ptr error) noexcept {
    if (!error) return;
    std::construct_at(&error_, std::move(error));
    what_ = holds::error;
  }
  item_or_error(item_or_error&& other) noexcept(noexcept(T(std::declval<T&&>()))) { take(other); }
  item_or_error& operator=(item_or_error&& other) noexcept(noexcept(T(std::declval<T&&>()))) {
    if (this == &other) return *this;
    reset();
    take(other);
    return *this;
  }
  ~item_or_error() { reset(); }

  /// Returns whether there is an item.
  explicit operator bool() const noexcept { return what_ == holds::item; }
  T& operator*() noexcept { return item_; }
  const T& operator*() const noexcept { return item_; }
  T* operator->() noexcept { return &item_; }
  const T* operator->() const noexcept { return &item_; }

  /// Returns why there is no item; null if nothing is known of that.
  std::exception_ptr error() const noexcept { return is_error() ? error_ : nullptr; }
  /// Returns whether there is an error.
  bool is_error() const noexcept { return what_ == holds::error; }

  /// Makes an item in the place of what was there.
  template <class... Arguments>
  T& emplace(Arguments&&... arguments) {
    reset();
    std::construct_at(&item_, std::forward<Arguments>(arguments)...);
    what_ = holds::item;
    return item_;
  }
  void reset() noexcept {
    if (what_ == holds::item) std::destroy_at(&item_);
    else if (what_ == holds::error) std::destroy_at(&error_);
    what_ = holds::nothing;
  }

 private:
  enum class holds : std::uint8_t { nothing, item, error };

  void take(item_or_error& other) {
    if (other.what_ == holds::item) std::construct_at(&item_, std::move(other.item_));
    else if (other.what_ == holds::error) std::construct_at(&error_, std::move(other.error_));
    what_ = other.what_;
  }

  union {
    T item_;
    std::exception_ptr error_;
  };
  holds what_ = holds::nothing;
};

}}}  // namespace millrace::detail
