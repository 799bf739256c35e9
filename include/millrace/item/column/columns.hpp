// columns: defines the columns of a batch, one array for each of the given members. Writes items into the rows of a
// slot.
//
//   struct example { mr::picture pixels; std::int32_t label; };
//   using both = mr::detail::columns<&example::pixels, &example::label>;    // [B, H, W, 3] u8 and [B] i32
//
// A column type is one of these:
// - a number; std::array<number, N>; std::vector<number>
// - bytes, such as a field of a record: u8 elements, copied once, from the read buffer into the row
// - a type with shape() and span(), such as an image or a tensor
// - a type with `using element`, shape(), and either render(std::span<element> row) or render(row, scratch&)
// - std::array of N items of one of these types, all of one shape: a row is [N, ...], such as N crops of one image
// - ragged, for rows of varying length (item/tensor/ragged.hpp)
// - a type such as ragged_audio, with length(), options() of type ragged_options, shape() of the longest possible row,
//   and render(row, scratch&), which writes a row whose first extent is length()
// - a type with size() (the height and width of its row) and options(), such as ragged_picture
//   (image/picture/ragged_picture.hpp)
// - a list type with length(), options() and list_mark. The items of the list join a group, as described below.
//
// A type that renders several rows together faster than one by one may also have these members:
// `static constexpr std::size_t together`, and
// `static void render_together(std::span<const T* const>, std::span<const std::span<element>>, scratch&)`.
// A call renders 2 to `together` rows. The bits of a row must not depend on the other rows.
// A type whose values are rendered faster together, in several columns and rows, has `using group` and `join(group&,
// std::span<element>) const`. join() only adds the value and its destination to the group. A group has clear() and
// render(scratch&), which renders all added values. The scratch memory contains one object of each group type. The
// values of up to columns::together rows, from all columns with the same group type, join the group.
// Shapes: the first item of a run fixes the shapes of all columns. column_places.hpp describes the slot.
// Errors: data_error if a later item has another shape; the message contains both shapes.
#pragma once

#include <millrace/item/column/column_places.hpp>
#include <millrace/item/column/column_traits.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/item/tensor/tensor.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <tuple>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The columns of a batch, named by member pointers. Computes their offsets in a slot and writes their rows.
template <auto... Members>
class columns : public column_places<member_type<Members>...> {
  using places = column_places<member_type<Members>...>;
  using places::places_, places::rows_, places::bytes_, places::flags_at_bytes_, places::more_at_bytes_,
      places::ragged_at_bytes_, places::add_bytes, places::no_flags;

 public:
  using typename places::delivered;
  using item = std::tuple_element_t<0, std::tuple<member_owner<Members>...>>;

  /// The preferred number of samples that a worker claims at once.
  static constexpr std::size_t together = rows_together<member_type<Members>...>();

  /// The name that reports use for the rendering of rows: a name that a column defines, or else "render".
  static constexpr const char* rendering = rendering_name<member_type<Members>...>();

  /// Fixes all shapes from the first item. If `flags` is true, slots also store a `valid` flag and a `replaced` flag
  /// for each row. `more_bytes` is the space in a slot that a derived class needs. Throws data_error if a ragged column
  /// of the item has no max_length.
  void fix_shapes(const item& first, std::size_t rows, bool flags = false, std::size_t more_bytes = 0) {
    rows_ = rows;
    bytes_ = 0;
    (fix<Members>(first), ...);
    flags_at_bytes_ = flags ? add_bytes(2 * rows) : no_flags;
    more_at_bytes_ = add_bytes(more_bytes);
    if constexpr (places::ragged > 0) {
      ragged_at_bytes_ = bytes_;
      (fix_ragged<Members>(), ...);
    }
  }

  /// Throws data_error if the shape or the ragged_options of a column differ from those in the first item.
  void check_shapes(const item& one) const { (check<Members>(one), ...); }

  /// For each column of lists, the offsets of the rows of one batch. They differ between batches.
  using batch_lists = std::array<list_places, sizeof...(Members)>;
  /// Creates the places of the rows of a batch. Call fix_shapes() first.
  owner<batch_lists> new_lists() const { return owner<batch_lists>(new batch_lists{{places_of_lists<Members>()...}}); }
  /// Chooses the places of consecutive rows, beginning with row `first`. A null pointer in `items` means a row without
  /// an item.
  void place_lists(std::span<const item* const> items, std::size_t first, batch_lists& lists) const noexcept {
    (add_lengths<Members>(items, first, lists[index_of<Members>]), ...);
  }

  /// Writes items into consecutive rows of the batch at `base`, beginning with row `first`. `lists` contains the places
  /// of the rows. If `lists` is null, each row has space for the longest list.
  void render(std::span<const item* const> items, std::byte* base, std::size_t first, scratch& s,
              const batch_lists* lists = nullptr) const {
    (render_column<Members>(items, base, first, s, lists), ...);
  }

  /// Returns the elements of a row of column M. M must not be ragged.
  template <auto M>
  auto row(std::byte* base, std::size_t number) const noexcept {
    using element = typename detail::column_traits<member_type<M>>::element;
    const auto& place = std::get<index_of<M>>(places_);
    auto* const column = reinterpret_cast<element*>(base + place.offset_bytes);
    return std::span<element>(column + number * place.row_elements, place.row_elements);
  }
  /// Returns the shape of a row of column M.
  template <auto M>
  const auto& row_shape() const noexcept {
    return std::get<index_of<M>>(places_).shape;
  }

  /// Returns the flags of a full batch: the `valid` flags of all rows, then the `replaced` flags of all rows. Requires
  /// slots with flags.
  std::span<std::uint8_t> flags(std::byte* base) const noexcept {
    return {reinterpret_cast<std::uint8_t*>(base + flags_at_bytes_), 2 * rows_};
  }
  /// Copies row `from` to row `to`. Call it before close().
  void copy_row(std::byte* base, std::size_t from, std::size_t to) const noexcept {
    (copy_column_row<Members>(base, from, to), ...);
  }
  /// Fills a row with zeros, or with padding if it is ragged. Call it before close().
  void clear_row(std::byte* base, std::size_t row) const noexcept { (clear_column_row<Members>(base, row), ...); }

  /// Pads ragged rows, and removes the gaps between the rows. Returns the used part of the slot. Call close() when all
  /// rows of the batch are written, and on one thread only. Pass the same `lists` as to render().
  slot_extent close(std::byte* base, std::size_t rows, const batch_lists* lists = nullptr) const noexcept {
    slot_extent e{.used_bytes = ragged_at_bytes_};
    (close_column<Members>(base, rows, e, lists), ...);
    return e;
  }

  /// Returns the view of column M (see column_places::view()).
  template <auto M>
  auto view(const delivered& b) const noexcept {
    return places::template view<index_of<M>>(b, member_spelling<M>.data());
  }
  /// Returns the views of all columns as a tuple, in the order of Members.
  auto views(const delivered& b) const noexcept { return std::tuple(view<Members>(b)...); }

  /// Returns "example::pixels [256, 224, 224, 3] u8" for each column, for reports.
  std::string describe() const {
    std::string text;
    (describe_one<Members>(text), ...);
    return text;
  }

 private:
  template <auto M>
  static constexpr bool is_ragged = varying_item<member_type<M>>;
  template <auto M>
  static constexpr bool is_sized = sized_item<member_type<M>>;
  template <auto M>
  static constexpr bool is_list = list_item<member_type<M>>;

  template <auto M>
  static constexpr std::size_t index_of = index_of_member<M, Members...>();

  template <auto M>
  void fix(const item& first) {
    using traits = detail::column_traits<member_type<M>>;
    auto& place = std::get<index_of<M>>(places_);
    place.shape = column_shape<M>(member_of<M>(first));
    place.row_elements = 1;
    for (const std::size_t extent : place.shape) place.row_elements *= extent;
    if constexpr (is_ragged<M>) {
      place.options = member_of<M>(first).options();
      if (place.shape[0] == 0)
        throw data_error(named_column<M>() + " is ragged, but its row in the first sample of the run has no options",
                         "Construct the row with ragged(elements, {.max_length = n})");
      if (is_list<M> && rows_ * place.shape[0] > std::size_t{0x7fff'ffff})
        throw setup_error(named_column<M>() + " has too many items: got " + std::to_string(rows_) + " rows of up to " +
                              std::to_string(place.shape[0]) +
                              " items each, expected at most 2147483647 items in a batch",
                          "Lower the number of rows, or the maximum number of items in a list");
      place.lengths_at_bytes = place.offset_before_bytes +
                               add_bytes(place.offset_before_bytes + rows_ * place.numbers * sizeof(std::int32_t));
      if (!place.is_fixed()) return;
    }
    place.offset_bytes = add_bytes(rows_ * place.row_elements * sizeof(typename traits::element));
  }

  // ---- ragged columns ----

  template <auto M>
  void fix_ragged() {
    if constexpr (is_ragged<M>) {
      auto& place = std::get<index_of<M>>(places_);
      if (!place.is_fixed()) place.offset_bytes = add_bytes(place.bytes(rows_, place.longest(rows_)));
    }
  }
  template <auto M>
  void write_sizes(std::span<const item* const> items, std::byte* base, std::size_t first) const noexcept {
    const auto& place = std::get<index_of<M>>(places_);
    auto* to = place.lengths(base) + place.numbers * first;
    for (const item* one : items) {
      if constexpr (is_list<M>) {
        *to++ = static_cast<std::int32_t>(member_of<M>(*one).length());
      } else {
        const std::array<std::int32_t, 2> size = member_of<M>(*one).size();
        to = std::copy(size.begin(), size.end(), to);
      }
    }
  }
  template <auto M>
  void render_ragged(const member_type<M>& one, std::byte* base, std::size_t row, scratch& s) const {
    using type = member_type<M>;
    using element = typename type::element;
    const auto& place = std::get<index_of<M>>(places_);
    auto* const to = reinterpret_cast<element*>(base + place.offset_bytes) + row * place.row_elements;
    const std::span<element> used(to, one.length() * (place.row_elements / place.shape[0]));
    if constexpr (renders_with_scratch<type>) one.render(used, s);
    else if (!used.empty()) std::memcpy(to, one.elements().data(), used.size_bytes());
    if (place.options.fixed) std::fill(to + used.size(), to + place.row_elements, place.options.padding);
    place.lengths(base)[row] = static_cast<std::int32_t>(one.length());
  }
  template <auto M>
  void close_column(std::byte* base, std::size_t rows, slot_extent& e, const batch_lists* lists) const noexcept {
    if constexpr (is_ragged<M>)
      e.padded_to[places::template ragged_index<index_of<M>>()] = std::get<index_of<M>>(places_).close(
          base, rows, e.used_bytes, places_in<M>(lists));
  }

  // ---- columns of lists ----

  template <auto M>
  list_places places_of_lists() const {
    if constexpr (is_list<M>) return list_places(rows_, std::get<index_of<M>>(places_).shape[0]);
    else return list_places();
  }
  template <auto M>
  static const list_places* places_in(const batch_lists* lists) noexcept {
    return lists ? &(*lists)[index_of<M>] : nullptr;
  }
  template <auto M>
  static void add_lengths(std::span<const item* const> items, std::size_t first, list_places& to) noexcept {
    if constexpr (is_list<M>) {
      std::array<std::uint32_t, 16> lengths;
      for (std::size_t begin = 0; begin < items.size(); begin += lengths.size()) {
        const auto part = items.subspan(begin, std::min(lengths.size(), items.size() - begin));
        for (std::size_t i = 0; i < part.size(); ++i)
          lengths[i] = part[i] ? static_cast<std::uint32_t>(member_of<M>(*part[i]).length()) : 0;
        to.add(first + begin, std::span(lengths).first(part.size()));
      }
    }
  }
  /// Returns the elements of a row. Call it before close().
  template <auto M>
  auto open_row(std::byte* base, std::size_t number, const batch_lists* lists) const noexcept {
    if constexpr (is_list<M>) {
      const auto& place = std::get<index_of<M>>(places_);
      const std::size_t first = place.first_item(number, places_in<M>(lists));
      return row<M>(base + first * place.item_bytes(), 0);
    } else {
      return row<M>(base, number);
    }
  }

  template <auto M>
  void copy_column_row(std::byte* base, std::size_t from, std::size_t to) const noexcept {
    using element = typename detail::column_traits<member_type<M>>::element;
    const auto& place = std::get<index_of<M>>(places_);
    const std::size_t row_bytes = place.row_elements * sizeof(element);
    std::byte* const column = base + place.offset_bytes;
    if (row_bytes > 0) std::memcpy(column + to * row_bytes, column + from * row_bytes, row_bytes);
    if constexpr (is_ragged<M>) {
      auto* const lengths = place.lengths(base);
      std::copy_n(lengths + place.numbers * from, place.numbers, lengths + place.numbers * to);
    }
  }
  template <auto M>
  void clear_column_row(std::byte* base, std::size_t row) const noexcept {
    using element = typename detail::column_traits<member_type<M>>::element;
    const auto& place = std::get<index_of<M>>(places_);
    auto* const begin = reinterpret_cast<element*>(base + place.offset_bytes) + row * place.row_elements;
    if constexpr (is_ragged<M>) {
      std::fill_n(place.lengths(base) + place.numbers * row, place.numbers, 0);
      if constexpr (!is_sized<M> && !is_list<M>)
        if (place.options.fixed) std::fill(begin, begin + place.row_elements, place.options.padding);
    } else {
      std::fill(begin, begin + place.row_elements, element{});
    }
  }

  template <auto M>
  void check(const item& one) const {
    const auto& place = std::get<index_of<M>>(places_);
    const auto shape = column_shape<M>(member_of<M>(one));
    if constexpr (is_ragged<M>)
      if (const auto& o = member_of<M>(one).options(); !(o == place.options))
        throw data_error(
            detail::named_column<M>() + " has " + o.describe() + " here, but " + place.options.describe() +
                " in the first sample of the run",
            std::string("Use the same ") + (is_sized<M> || is_list<M> ? "" : "ragged_") + "options for all samples");
    if (shape == place.shape) return;
    throw_other_shape(detail::member_spelling<M>.data(), shape, place.shape);
  }

  template <auto M>
  void render_column(std::span<const item* const> items, std::byte* base, std::size_t first, scratch& s,
                     const batch_lists* lists) const {
    using type = member_type<M>;
    using traits = detail::column_traits<type>;
    using element = typename traits::element;
    if constexpr (has_group<M>) {
      if constexpr (begins_group<M, Members...>())
        render_group<typename group_of<type>::type>(items, base, first, s, lists);
      if constexpr (is_sized<M> || is_list<M>) write_sizes<M>(items, base, first);
    } else if constexpr (is_ragged<M>) {
      for (std::size_t i = 0; i < items.size(); ++i) render_ragged<M>(member_of<M>(*items[i]), base, first + i, s);
    } else if constexpr (renders_together<type>) {
      std::array<const type*, type::together> members;
      std::array<std::span<element>, type::together> rows;
      for (std::size_t begin = 0; begin < items.size(); begin += type::together) {
        const std::size_t size = std::min<std::size_t>(type::together, items.size() - begin);
        for (std::size_t j = 0; j < size; ++j) {
          members[j] = &member_of<M>(*items[begin + j]);
          rows[j] = row<M>(base, first + begin + j);
        }
        if (size == 1) traits::render(*members[0], rows[0], s);
        else type::render_together(std::span(members).first(size), std::span(rows).first(size), s);
      }
    } else {
      for (std::size_t i = 0; i < items.size(); ++i)
        traits::render(member_of<M>(*items[i]), row<M>(base, first + i), s);
    }
  }

  // ---- columns whose rows are rendered in groups ----

  template <auto M>
  static constexpr bool has_group = !std::is_void_v<typename group_of<member_type<M>>::type>;

  template <class Group>
  void render_group(std::span<const item* const> items, std::byte* base, std::size_t first, scratch& s,
                    const batch_lists* lists) const {
    auto& group = s.get<Group>();
    for (std::size_t begin = 0; begin < items.size(); begin += together) {
      const std::size_t size = std::min(together, items.size() - begin);
      group.clear();
      for (std::size_t i = begin; i < begin + size; ++i) (join<Members>(group, *items[i], base, first + i, lists), ...);
      group.render(s);
    }
  }

  template <auto M, class Group>
  void join(Group& group, const item& one, std::byte* base, std::size_t number, const batch_lists* lists) const {
    using type = member_type<M>;
    if constexpr (std::same_as<typename group_of<type>::type, Group>)
      group_of<type>::join(member_of<M>(one), group, open_row<M>(base, number, lists));
  }

  template <auto M>
  void describe_one(std::string& text) const {
    using traits = detail::column_traits<member_type<M>>;
    if (!text.empty()) text += ", ";
    text += column_text({.name = detail::member_spelling<M>.data(),
                         .ragged = is_ragged<M>,
                         .rows = rows_,
                         .row = std::get<index_of<M>>(places_).shape,
                         .dtype = dtype_name<typename traits::element>()});
  }
};

}}}   // namespace millrace::detail
