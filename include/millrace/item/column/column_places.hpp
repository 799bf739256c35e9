// The places of the columns of a batch in its slot (the memory of a batch), and the views of a delivered batch.
//
//   mr::detail::column_places<mr::picture, std::int32_t> places;        // columns<...> fills it from the first item
//   auto labels = places.view<1>({.base = slot, .rows = 256}, "example::label");
//
// In a slot, the columns of fixed shape precede the ragged columns. Each row of a ragged column is written with space
// for the longest possible row. When all rows are written, columns::close() pads the rows, except lists, to the longest
// row of the batch. It also removes the gaps between the rows. Columns of lists, and columns whose rows vary in height
// and width, are ragged columns too.
// Units: bytes from the front of a slot. Errors: none. Threads: not synchronized; one thread closes a slot.
#pragma once

#include <millrace/item/column/column_place.hpp>
#include <millrace/item/column/column_traits.hpp>
#include <millrace/item/column/slot_contents.hpp>
#include <millrace/item/tensor/tensor_view.hpp>

#include <algorithm>
#include <cstring>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The places of columns whose members have these types.
template <class... Types>
class column_places {
 public:
  static constexpr std::size_t count = sizeof...(Types);
  template <std::size_t Index>
  using type = std::tuple_element_t<Index, std::tuple<Types...>>;

  /// The number of ragged columns.
  static constexpr std::size_t ragged = (std::size_t{0} + ... + (varying_item<Types> ? 1 : 0));
  /// True if at least one column is a column of lists.
  static constexpr bool has_lists = (list_item<Types> || ...);
  static_assert(ragged <= slot_extent::max_ragged, "millrace: a batch has at most 8 ragged columns");

  /// Returns the number of rows in a full batch.
  std::size_t rows() const noexcept { return rows_; }
  /// Returns the bytes of the largest possible batch, with every column aligned to 256 bytes.
  std::size_t batch_bytes() const noexcept { return bytes_; }
  /// Returns the offset of the part of a slot that a derived class uses.
  std::size_t more_at_bytes() const noexcept { return more_at_bytes_; }

  /// Returns the size of the largest row in the form that set_row() reads.
  std::size_t max_row_bytes() const noexcept {
    return std::apply([](const auto&... place) { return (std::size_t{0} + ... + place.max_row_bytes()); }, places_);
  }
  /// Writes a row of a batch. Call it before close(). `from` has the bytes of each column in order. In a ragged column,
  /// the size of the row precedes the bytes. If `from` does not have this form, returns false. The content of the row
  /// is then unspecified.
  bool set_row(std::byte* base, std::size_t row, std::span<const std::byte> from) const noexcept {
    return std::apply([&](const auto&... place) { return (place.set_row(base, row, from) && ...); }, places_) &&
           from.empty();
  }

  /// Appends a row in the form that set_row() reads. Call it before close().
  void append_row(std::byte* base, std::size_t row, std::vector<std::byte>& to) const {
    std::apply([&](const auto&... place) { (place.append_row(base, row, to), ...); }, places_);
  }

  /// The properties of a delivered batch that views need.
  struct delivered {
    std::byte* base = nullptr;
    std::size_t rows = 0;
    slot_extent extent{};
    memory_kind memory = memory_kind::host;
  };
  /// Returns the view of a column: `[rows, ...]`, or a padded_view, sized_view or list_view if it is ragged.
  template <std::size_t Index>
  auto view(const delivered& b, const char* name) const noexcept {
    using traits = column_traits<type<Index>>;
    const auto& place = std::get<Index>(places_);
    tensor_view<typename traits::element, traits::rank + 1> v;
    v.shape[0] = b.rows;
    for (std::size_t d = 0; d < traits::rank; ++d) v.shape[d + 1] = place.shape[d];
    v.memory = b.memory;
    v.name = name;
    if constexpr (varying_item<type<Index>>) {
      std::size_t at_bytes = ragged_at_bytes_;
      [&]<std::size_t... Before>(std::index_sequence<Before...>) {
        (add_column_bytes<Before>(b, at_bytes), ...);
      }(std::make_index_sequence<Index>{});
      if (place.is_fixed()) at_bytes = place.offset_bytes;
      v.data = reinterpret_cast<typename traits::element*>(b.base + at_bytes);
      const std::uint32_t padded_to = b.extent.padded_to[ragged_index<Index>()];
      auto* const lengths = reinterpret_cast<std::int32_t*>(b.base + place.lengths_at_bytes);
      if constexpr (sized_item<type<Index>>) {
        v.shape[1] = padded_to >> 16;
        v.shape[2] = padded_to & 0xffff;
        sized_view<typename traits::element, traits::rank + 1> both{.values = v};
        both.sizes = tensor_view<std::int32_t, 2>{
            .data = lengths, .shape = {b.rows, 2}, .memory = b.memory, .name = v.name};
        return both;
      } else if constexpr (list_item<type<Index>>) {
        list_view<typename traits::element, traits::rank> both{
            .values = {.data = v.data, .shape = place.shape, .memory = v.memory, .name = v.name}};
        both.values.shape[0] = padded_to;
        both.offsets = tensor_view<std::int32_t, 1>{
            .data = lengths - 1, .shape = {b.rows + 1}, .memory = b.memory, .name = v.name};
        return both;
      } else {
        v.shape[1] = padded_to;
        padded_view<typename traits::element, traits::rank + 1> both{.values = v};
        both.lengths = tensor_view<std::int32_t, 1>{
            .data = lengths, .shape = {b.rows}, .memory = b.memory, .name = v.name};
        return both;
      }
    } else {
      v.data = reinterpret_cast<typename traits::element*>(b.base + place.offset_bytes);
      return v;
    }
  }

  /// The two kinds of flags of a row: valid (it has a sample) and replaced (it is a copy of another row).
  enum class row_flags : std::uint8_t { valid, replaced };
  /// Returns the flags of one kind, `[rows]`; std::nullopt if slots have no flags.
  std::optional<tensor_view<const std::uint8_t, 1>> flags_view(row_flags kind, const delivered& b) const noexcept {
    if (flags_at_bytes_ == no_flags) return std::nullopt;
    const std::size_t at_bytes = flags_at_bytes_ + (kind == row_flags::valid ? 0 : rows_);
    return tensor_view<const std::uint8_t, 1>{.data = reinterpret_cast<const std::uint8_t*>(b.base + at_bytes),
                                              .shape = {b.rows},
                                              .memory = b.memory,
                                              .name = kind == row_flags::valid ? "valid()" : "replaced()"};
  }

 protected:
  /// Returns `bytes` rounded up to the alignment of a column.
  static constexpr std::size_t aligned(std::size_t bytes) noexcept { return aligned_column_bytes(bytes); }
  std::size_t add_bytes(std::size_t bytes) noexcept { return std::exchange(bytes_, bytes_ + aligned(bytes)); }

  template <std::size_t Index>
  static constexpr std::size_t ragged_index() {
    std::size_t number = 0, index = 0;
    ((number += index++ < Index && varying_item<Types> ? 1 : 0), ...);
    return number;
  }

  std::tuple<column_place<Types>...> places_{};
  std::size_t rows_ = 0;
  std::size_t bytes_ = 0;
  static constexpr std::size_t no_flags = ~std::size_t{0};
  std::size_t flags_at_bytes_ = no_flags, more_at_bytes_ = 0;
  std::size_t ragged_at_bytes_ = 0;   // offset of the ragged columns, after the columns of fixed shape

 private:
  /// Adds the bytes of a ragged column to `at_bytes`.
  template <std::size_t Index>
  void add_column_bytes(const delivered& b, std::size_t& at_bytes) const noexcept {
    if constexpr (varying_item<type<Index>>) {
      const auto& place = std::get<Index>(places_);
      if (!place.is_fixed()) at_bytes += place.bytes(b.rows, b.extent.padded_to[ragged_index<Index>()]);
    }
  }
};

}}}   // namespace millrace::detail
