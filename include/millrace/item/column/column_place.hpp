// The place of a column in a slot (the memory of a batch). The place contains the shape and the offset of the rows. For
// ragged rows, it also contains their options, such as the padding.
//
//   mr::detail::column_place<mr::ragged<float, 2>> place;
//   place.shape = {100, 4}, place.row_elements = 400, place.options = first.options();
//   place.lengths_at_bytes = 0, place.offset_bytes = 1'024;
//   const std::uint32_t longest = place.close(base, rows, used_bytes);    // adds the bytes of the rows to `used_bytes`
//
// In a column of lists, close() replaces the lengths of the rows by offsets.
//
// Units: offset_bytes and lengths_at_bytes are bytes from the front of a slot. A length is the size of a row in the
// dimension that varies. The offsets in a column of lists count items. Errors: none. Threads: not synchronized; one
// thread closes a slot.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/item/column/column_traits.hpp>
#include <millrace/simd/stream_copy.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Chooses the place of each row in a column of lists, before the rows of the batch are rendered. The place of a row is
// the index of its first item in the column.
//
//   mr::detail::list_places places(256, 8);      // 256 rows of at most 8 items
//   places.add(0, lengths);                      // rows 0, 1, ...: their lengths are known after the maps
//   const std::size_t first_item = places.of(0);
//
// If rows are added in order, no gaps arise between them, and column_place::close() moves them only together with
// the entire column. Because workers process the rows of a batch concurrently, a row may be added before a preceding
// row. Then the place of the later row leaves space for the longest possible list in each preceding row that is not yet
// added. Places never overlap, and close() moves rows only towards the front.
//
// Units: items of the column. Errors: none. Threads: any thread may call add(); of() is for the thread that added the
// row, or for all threads after the last row is rendered. Cost: a lock per call of add(), no allocation.

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

/// Returns `bytes` rounded up to the alignment of a column.
constexpr std::size_t aligned_column_bytes(std::size_t bytes) noexcept { return (bytes + 255) / 256 * 256; }

/// The place of a column whose rows have one shape.
template <class T>
struct column_place {
  std::array<std::size_t, column_traits<T>::rank> shape{};
  std::size_t row_elements = 1;
  std::size_t offset_bytes = 0;

  using element = typename column_traits<T>::element;
  /// Returns the number of bytes that set_row() reads for one row.
  std::size_t max_row_bytes() const noexcept { return row_elements * sizeof(element); }
  /// Copies a row from the front of `from` to the slot, and removes its bytes from `from`. Returns false if bytes are
  /// missing, or if a bool is neither 0 nor 1.
  bool set_row(std::byte* base, std::size_t row, std::span<const std::byte>& from) const noexcept {
    const std::size_t bytes = max_row_bytes();
    if (from.size() < bytes) return false;
    if constexpr (std::is_same_v<element, bool>)
      if (std::any_of(from.data(), from.data() + bytes, [](std::byte b) { return b > std::byte{1}; })) return false;
    stream_copy(base + offset_bytes + row * bytes, from.data(), bytes);
    from = from.subspan(bytes);
    return true;
  }
  /// Appends a row in the form that set_row() reads.
  void append_row(const std::byte* base, std::size_t row, std::vector<std::byte>& to) const {
    const std::byte* const from = base + offset_bytes + row * max_row_bytes();
    to.insert(to.end(), from, from + max_row_bytes());
  }
};

/// The place of a column whose rows vary. `shape` is the shape of the largest possible row.
template <varying_item T>
struct column_place<T> {
  using element = typename T::element;
  static constexpr bool sized = sized_item<T>, list = list_item<T>;
  static constexpr std::size_t numbers = sized ? 2 : 1;   ///< 2 for height and width, 1 for a length

  std::array<std::size_t, column_traits<T>::rank> shape{};
  std::size_t row_elements = 1;
  std::size_t offset_bytes =
      0;   ///< offset of the rows until close(); close() moves the rows unless the column is fixed
  std::size_t lengths_at_bytes = 0;
  std::remove_cvref_t<decltype(std::declval<const T&>().options())> options{};

  bool is_fixed() const noexcept {
    if constexpr (sized || list) return false;
    else return options.fixed;
  }
  /// The number of bytes before the lengths of the rows. In a column of lists, these bytes contain the first offset,
  /// which is 0. In other columns, the number is 0.
  static constexpr std::size_t offset_before_bytes = list ? sizeof(std::int32_t) : 0;
  std::int32_t* lengths(std::byte* base) const noexcept {
    return reinterpret_cast<std::int32_t*>(base + lengths_at_bytes);
  }
  /// Returns the maximum of slot_extent::padded_to for this column.
  std::size_t longest(std::size_t rows) const noexcept {
    if constexpr (sized) return shape[0] << 16 | shape[1];
    else if constexpr (list) return rows * shape[0];
    else return shape[0];
  }
  /// Returns the number of bytes of `rows` rows that are padded to `padded_to`.
  std::size_t bytes(std::size_t rows, std::size_t padded_to) const noexcept {
    std::size_t elements = 0;
    if constexpr (sized)
      elements = rows * (padded_to >> 16) * (padded_to & 0xffff) * (row_elements / shape[0] / shape[1]);
    else elements = (list ? 1 : rows) * (row_elements / shape[0]) * padded_to;
    return aligned_column_bytes(elements * sizeof(element));
  }

  /// Returns the index of the first item of a row among the items in the slot. Valid until close() moves the items.
  std::size_t first_item(std::size_t row, const list_places* places) const noexcept {
    return places ? places->of(row) : row * shape[0];
  }
  std::size_t item_bytes() const noexcept { return row_elements / shape[0] * sizeof(element); }

  std::size_t max_row_bytes() const noexcept { return numbers * sizeof(std::int32_t) + row_elements * sizeof(element); }
  /// Copies a row from the front of `from` to the slot. Call it before close(). `from` contains the size of the row,
  /// then its elements. Returns false if the size is too large, or if bytes are missing.
  bool set_row(std::byte* base, std::size_t row, std::span<const std::byte>& from) const noexcept {
    std::array<std::int32_t, numbers> size;
    if (from.size() < sizeof size) return false;
    std::memcpy(size.data(), from.data(), sizeof size);
    for (std::size_t i = 0; i < numbers; ++i)
      if (size[i] < 0 || static_cast<std::size_t>(size[i]) > shape[i]) return false;
    // A row of varying height and width consists of lines. In the slot, each line has the space of the longest possible
    // line.
    const std::size_t inner = row_elements / (sized ? shape[0] * shape[1] : shape[0]);
    const std::size_t lines = sized ? static_cast<std::size_t>(size[0]) : 1;
    const std::size_t line = static_cast<std::size_t>(size.back()) * inner;
    from = from.subspan(sizeof size);
    if (from.size() < lines * line * sizeof(element)) return false;
    auto* const to = reinterpret_cast<element*>(base + offset_bytes) + row * row_elements;
    for (std::size_t y = 0; y < lines; ++y) {
      if (line > 0) std::memcpy(to + y * shape[sized ? 1 : 0] * inner, from.data(), line * sizeof(element));
      from = from.subspan(line * sizeof(element));
    }
    if constexpr (!sized && !list)
      if (options.fixed) std::fill(to + line, to + row_elements, options.padding);
    std::copy(size.begin(), size.end(), lengths(base) + numbers * row);
    return true;
  }

  /// Appends a row in the form that set_row() reads. Call it before close().
  void append_row(std::byte* base, std::size_t row, std::vector<std::byte>& to) const {
    const std::int32_t* const size = lengths(base) + numbers * row;
    const auto* const numbers_of_row = reinterpret_cast<const std::byte*>(size);
    to.insert(to.end(), numbers_of_row, numbers_of_row + numbers * sizeof *size);
    const std::size_t inner = row_elements / (sized ? shape[0] * shape[1] : shape[0]) * sizeof(element);
    const std::size_t lines = sized ? static_cast<std::size_t>(size[0]) : 1;
    const std::byte* from = base + offset_bytes + row * row_elements * sizeof(element);
    for (std::size_t y = 0; y < lines; ++y, from += shape[sized ? 1 : 0] * inner)
      to.insert(to.end(), from, from + static_cast<std::size_t>(size[numbers - 1]) * inner);
  }

  /// Pads the rows, and moves them without gaps to the offset `used_bytes`, where the used part of the slot ends. Then
  /// adds the bytes of the rows to `used_bytes`. Lists are not padded, and their lengths become offsets. If the column
  /// is fixed, moves nothing and adds nothing. Returns the number for slot_extent::padded_to. `places` may be null.
  std::uint32_t close(std::byte* base, std::size_t rows, std::size_t& used_bytes,
                      [[maybe_unused]] const list_places* places = nullptr) const noexcept {
    auto* const numbers_of_rows = lengths(base);
    const auto length = [&](std::size_t i) { return static_cast<std::size_t>(numbers_of_rows[i]); };
    if constexpr (list) {
      const std::size_t inner = row_elements / shape[0];
      line_mover move{base + used_bytes, nullptr};
      std::size_t total = 0;
      numbers_of_rows[-1] = 0;
      for (std::size_t i = 0; i < rows; ++i) {
        const std::size_t items = length(i);
        move.from = base + offset_bytes + first_item(i, places) * item_bytes();
        move.next(items * inner, items * inner, 0);
        numbers_of_rows[i] = static_cast<std::int32_t>(total += items);
      }
      used_bytes += bytes(rows, total);
      return static_cast<std::uint32_t>(total);
    } else if constexpr (sized) {
      std::array<std::size_t, 2> largest{};
      for (std::size_t i = 0; i < 2 * rows; ++i) largest[i % 2] = std::max(largest[i % 2], length(i));
      const auto [height, width] = options.padded(largest);
      const std::size_t inner = row_elements / shape[0] / shape[1];
      line_mover move{base + used_bytes, base + offset_bytes};
      for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t y = 0; y < shape[0]; ++y) {
          const std::size_t present = y < length(2 * i) ? length(2 * i + 1) * inner : 0;
          const std::span<element> rest = move.next(present, y < height ? width * inner : 0, shape[1] * inner);
          options.fill(rest);
        }
      used_bytes += bytes(rows, height << 16 | width);
      return static_cast<std::uint32_t>(height << 16 | width);
    } else {
      std::size_t longest_row = 0;
      for (std::size_t i = 0; i < rows; ++i) longest_row = std::max(longest_row, length(i));
      longest_row = options.padded(longest_row);
      if (options.fixed) return static_cast<std::uint32_t>(longest_row);
      const std::size_t inner = row_elements / shape[0];
      line_mover move{base + used_bytes, base + offset_bytes};
      for (std::size_t i = 0; i < rows; ++i) {
        const std::span<element> rest = move.next(length(i) * inner, longest_row * inner, row_elements);
        std::fill(rest.begin(), rest.end(), options.padding);
      }
      used_bytes += bytes(rows, longest_row);
      return static_cast<std::uint32_t>(longest_row);
    }
  }

 private:
  /// Moves lines towards the front, in order.
  struct line_mover {
    std::byte* to;
    const std::byte* from;

    /// Moves the next line, which has space for `stored` elements and contains `present` elements, into a line of
    /// `length` elements. Returns the elements of the new line that are not yet set.
    std::span<element> next(std::size_t present, std::size_t length, std::size_t stored) noexcept {
      if (present > 0 && to != from) std::memmove(to, from, present * sizeof(element));
      const std::span<element> rest(reinterpret_cast<element*>(to) + present, length - present);
      to += length * sizeof(element);
      from += stored * sizeof(element);
      return rest;
    }
  };
};

}}}   // namespace millrace::detail
