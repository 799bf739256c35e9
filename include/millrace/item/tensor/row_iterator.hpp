// row_iterator: iterates over the rows of a view or tensor with 2 or more dimensions.
//
//   for (auto image : b.get<&example::pixels>()) use(image.shape[0], image.data);     // [H, W, C] each
//
// Rows are views that are returned by value and refer to the memory of the complete view. A .cu file may include this
// header, because it is cheap to compile. Threads: not synchronized.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A forward iterator over views that have the same shape and follow each other in memory.
template <class Row>
class row_iterator {
 public:
  using value_type = Row;
  using reference = Row;
  using difference_type = std::ptrdiff_t;

  row_iterator() = default;
  /// Points to row `at`; `row` is row 0.
  constexpr row_iterator(Row row, std::size_t at) noexcept : row_(row), at_(at) {}

  /// Returns the row as a view.
  constexpr Row operator*() const noexcept {
    Row row = row_;
    row.data += at_ * row.size();
    return row;
  }
  /// Moves to the next row.
  constexpr row_iterator& operator++() noexcept {
    ++at_;
    return *this;
  }
  /// Moves to the next row and returns the previous iterator.
  constexpr row_iterator operator++(int) noexcept {
    row_iterator before = *this;
    ++at_;
    return before;
  }
  /// Compares row numbers only.
  friend constexpr bool operator==(const row_iterator& a, const row_iterator& b) noexcept { return a.at_ == b.at_; }

 private:
  Row row_{};
  std::size_t at_ = 0;
};

}}}  // namespace millrace::detail
