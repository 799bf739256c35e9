// item_or_error: contains a value, an exception_ptr, or nothing. Its size is the size of the larger alternative plus
// one byte.
//
//   mr::detail::item_or_error<mr::record> read = reader.next();   // an item, an optional item, or an error
//   if (!read && read.error()) std::rethrow_exception(read.error());
//   mr::record r = std::move(*read);
//   read.reset();                                                 // now neither an item nor an error
//
// Errors: the exceptions of the item's constructors. Threads: not synchronized.
#pragma once

#include <millrace/base/version.hpp>

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Contains a T, an error, or nothing.
template <class T>
class item_or_error {
 public:
  item_or_error() noexcept {}
  item_or_error(T item) { emplace(std::move(item)); }
  item_or_error(std::optional<T> item) {
    if (item) emplace(std::move(*item));
  }
  item_or_error(std::exception_ptr error) noexcept { set_error(std::move(error)); }
  item_or_error(item_or_error&& other) noexcept(noexcept(T(std::declval<T&&>()))) { move_from(other); }
  item_or_error& operator=(item_or_error&& other) noexcept(noexcept(T(std::declval<T&&>()))) {
    if (this == &other) return *this;
    clear();
    move_from(other);
    return *this;
  }
  ~item_or_error() { reset(); }

  /// Returns whether there is an item.
  explicit operator bool() const noexcept { return content_ == content::item; }
  T& operator*() noexcept { return item_; }
  const T& operator*() const noexcept { return item_; }
  T* operator->() noexcept { return &item_; }
  const T* operator->() const noexcept { return &item_; }

  /// Returns the error; null if there is an item or nothing.
  std::exception_ptr error() const noexcept { return is_error() ? error_ : nullptr; }
  /// Returns whether there is an error.
  bool is_error() const noexcept { return content_ == content::error; }

  /// Replaces the content with a new item.
  template <class... Arguments>
  T& emplace(Arguments&&... arguments) {
    clear();
    std::construct_at(&item_, std::forward<Arguments>(arguments)...);
    content_ = content::item;
    return item_;
  }
  /// Replaces the content with an error, or with nothing if `error` is null.
  void set_error(std::exception_ptr error) noexcept {
    clear();
    if (!error) return;
    std::construct_at(&error_, std::move(error));
    content_ = content::error;
  }
  MILLRACE_ALWAYS_INLINE void reset() noexcept {
    if (content_ == content::item) std::destroy_at(&item_);
    else if (content_ == content::error) std::destroy_at(&error_);
    content_ = content::nothing;
  }

 private:
  enum class content : std::uint8_t { nothing, item, error };

  // Not always inlined: emplace() needs fewer instructions without it.
  void clear() noexcept { reset(); }
  void move_from(item_or_error& other) {
    if (other.content_ == content::item) std::construct_at(&item_, std::move(other.item_));
    else if (other.content_ == content::error) std::construct_at(&error_, std::move(other.error_));
    content_ = other.content_;
  }

  union {
    T item_;
    std::exception_ptr error_;
  };
  content content_ = content::nothing;
};

}}}   // namespace millrace::detail
