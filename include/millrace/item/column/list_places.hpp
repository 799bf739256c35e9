// Chooses, before the rows of a batch are rendered, the place of each row in a column of lists. The place of a row is
// the number of items in the column before the row.
//
//   mr::detail::list_places places(256, 8);      // 256 rows of at most 8 items
//   places.add(0, lengths);                      // rows 0, 1, ...: their lengths are known after the maps
//   const std::size_t first_item = places.of(0);
//
// If the lengths of all preceding rows are known, a row gets its final place, and close() does not move it. Otherwise
// the place leaves space for the longest possible list in each preceding row of unknown length. Lengths may be unknown
// because workers process the rows of a batch concurrently. Places never overlap, and close() moves rows only towards
// the front.
//
// Units: items of the column. Errors: none. Threads: any thread may call add(); of() is for the thread that added the
// row, or for all threads after the last row is rendered. Cost: a lock per call of add(), no allocation.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The places of the rows of a batch in one column of lists.
class list_places {
 public:
  list_places() = default;
  /// Creates places for a batch of `rows` lists with at most `longest` items.
  list_places(std::size_t rows, std::size_t longest) : places_(rows), longest_(longest) {}

  /// Chooses the places of consecutive rows, beginning with row `first`. `lengths` has the number of items of each row.
  void add(std::size_t first, std::span<const std::uint32_t> lengths) noexcept {
    const std::lock_guard lock(mutex_);
    std::size_t gap = first;   // the first of the consecutive unknown rows before `first`
    while (gap > 0 && places_[gap - 1].end == unknown) --gap;
    std::uint32_t next = gap > 0 ? places_[gap - 1].end : 0;
    next += static_cast<std::uint32_t>((first - gap) * longest_);
    for (const std::uint32_t length : lengths) {
      places_[first++] = {next, next + length};
      next += length;
    }
  }
  /// Returns the place of a row. The row must have been added.
  std::size_t of(std::size_t row) const noexcept { return places_[row].begin; }

  /// Removes all rows.
  void clear() noexcept {
    const std::lock_guard lock(mutex_);
    for (place& p : places_) p = {};
  }

 private:
  static constexpr std::uint32_t unknown = ~std::uint32_t{0};
  struct place {
    std::uint32_t begin = 0, end = unknown;
  };

  std::mutex mutex_{};
  std::vector<place> places_{};
  std::size_t longest_ = 0;
};

}}}   // namespace millrace::detail
