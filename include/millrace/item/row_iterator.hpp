// The rows of a view or a tensor, one after the other: what a loop over one of rank 2 or more goes through.
//
//   for (auto picture : b.get<&example::pixels>()) use(picture.shape[0], picture.data);     // [H, W, C] each
//
// Rows are views, given by value; they refer to what the view refers to. Light: for .cu files. Threads: a value.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>

namespace millrace { inline namespace MILLRACE_ABI {

/// A forward iterator over views of like shape that lie behind each other.
template <class Row>
class row_iterator {
 public:
  using value_type = Row;
  using reference = Row;
  using difference_type = std::ptrdiff_t;

  row_iterator() = default;
  /// At row `at`, which is `row` moved on by so many of its own size.
  constexpr row_iterator(Row row, std::size_t at) noexcept : row_(row), at_(at) {}

  constexpr Row operator*() const noexcept {
    Row row = row_;
    row.data += at_ * row.size();
    return row;
  }
  constexpr row_iterator& operator++() noexcept {
    ++at_;
    return *this;
  }
  constexpr row_iterator operator++(int) noexcept {
    row_iterator before = *this;
    ++at_;
    return before;
  }
  friend constexpr bool operator==(const row_iterator& a, const row_iterator& b) noexcept { return a.at_ == b.at_; }

 private:
  Row row_{};
  std::size_t at_ = 0;
};

}}  // namespace millrace
