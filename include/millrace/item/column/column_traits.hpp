// Describes how a member of the user's struct becomes a column of a batch: the element type, the shape, and the
// function that writes a row.
//
//   static_assert(mr::detail::column_type<mr::picture>);
//   mr::detail::column_traits<std::vector<float>>::render(item, row, scratch);
//
// item/column/columns.hpp lists the possible columns. Errors: none. Threads: the functions are pure; any thread may
// call them.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/item/bytes.hpp>
#include <millrace/item/column/member.hpp>
#include <millrace/item/scratch.hpp>
#include <millrace/item/tensor/tensor.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

template <class T>
struct shape_rank;
template <std::size_t N>
struct shape_rank<std::array<std::size_t, N>> {
  static constexpr std::size_t value = N;
};

template <class T>
concept has_shape = requires(const T& t) { shape_rank<std::remove_cvref_t<decltype(t.shape())>>::value; };
template <class T>
concept has_span = has_shape<T> && requires(const T& t) {
  { *t.span().data() } -> std::convertible_to<std::remove_cvref_t<decltype(*t.span().data())>>;
};
template <class T>
concept renders_with_scratch = has_shape<T> && requires(const T& t, std::span<typename T::element> row, scratch& s) {
  t.render(row, s);
};
template <class T>
concept renders_alone = has_shape<T> && requires(const T& t, std::span<typename T::element> row) { t.render(row); };

/// Describes one member type: its element type, the number of dimensions of a row, the shape of an item, and how a row
/// is written.
template <class T>
struct column_traits;

template <tensor_element T>
struct column_traits<T> {
  using element = T;
  static constexpr std::size_t rank = 0;
  static std::array<std::size_t, 0> shape(const T&) { return {}; }
  static void render(const T& item, std::span<T> row, scratch&) { row[0] = item; }
};
template <tensor_element T, std::size_t N>
struct column_traits<std::array<T, N>> {
  using element = T;
  static constexpr std::size_t rank = 1;
  static std::array<std::size_t, 1> shape(const std::array<T, N>&) { return {N}; }
  static void render(const std::array<T, N>& item, std::span<T> row, scratch&) {
    std::memcpy(row.data(), item.data(), N * sizeof(T));
  }
};
template <tensor_element T>
struct column_traits<std::vector<T>> {
  using element = T;
  static constexpr std::size_t rank = 1;
  static std::array<std::size_t, 1> shape(const std::vector<T>& item) { return {item.size()}; }
  static void render(const std::vector<T>& item, std::span<T> row, scratch&) {
    if (!item.empty()) std::memcpy(row.data(), item.data(), item.size() * sizeof(T));
  }
};
template <>
struct column_traits<bytes> {
  using element = std::uint8_t;
  static constexpr std::size_t rank = 1;
  static std::array<std::size_t, 1> shape(const bytes& item) { return {item.size()}; }
  static void render(const bytes& item, std::span<std::uint8_t> row, scratch&) {
    if (!item.empty()) std::memcpy(row.data(), item.data(), item.size());
  }
};
template <class T>
  requires renders_with_scratch<T> || renders_alone<T>
struct column_traits<T> {
  using element = typename T::element;
  static constexpr std::size_t rank =
      shape_rank<std::remove_cvref_t<decltype(std::declval<const T&>().shape())>>::value;
  static auto shape(const T& item) { return item.shape(); }
  static void render(const T& item, std::span<element> row, scratch& s) {
    if constexpr (renders_with_scratch<T>) item.render(row, s);
    else item.render(row);
  }
};
template <has_span T>
  requires(!renders_with_scratch<T> && !renders_alone<T>)
struct column_traits<T> {
  using element = std::remove_cvref_t<decltype(*std::declval<const T&>().span().data())>;
  static constexpr std::size_t rank =
      shape_rank<std::remove_cvref_t<decltype(std::declval<const T&>().shape())>>::value;
  static auto shape(const T& item) { return item.shape(); }
  static void render(const T& item, std::span<element> row, scratch&) {
    std::memcpy(row.data(), item.span().data(), row.size_bytes());
  }
};

/// A column type whose column_traits have shape() and render().
template <class T>
concept fixed_column = requires(const T& item, std::span<typename column_traits<T>::element> row, scratch& s) {
  column_traits<T>::shape(item);
  column_traits<T>::render(item, row, s);
};

/// A type whose rows vary in height and width, such as ragged_picture. shape() returns the shape of the largest
/// possible row.
template <class T>
concept sized_item = has_shape<T> && tensor_element<typename T::element> &&
                     requires(const T& t, std::span<typename T::element> row) {
                       { t.size() } -> std::same_as<std::array<std::int32_t, 2>>;
                       { t.options().padded({}) } -> std::same_as<std::array<std::size_t, 2>>;
                       t.options().fill(row);
                     };

/// A type whose rows are lists. The items of all lists have the same shape. shape() returns the shape of the longest
/// possible list, [items, ...].
template <class T>
concept list_item = has_shape<T> && tensor_element<typename T::element> && requires(const T& t) {
  { t.length() } -> std::same_as<std::size_t>;
  t.options().describe();
  typename T::list_mark;
};
/// A type whose rows vary in length, such as ragged. shape() returns the shape of the longest possible row. The type
/// has either elements(), or a render() that writes a row of the item's length.
template <class T>
concept ragged_item = has_shape<T> && tensor_element<typename T::element> && !std::same_as<typename T::element, bool> &&
                      requires(const T& t) { t.options().padded(t.length()); } &&
                      (renders_with_scratch<T> || requires(const T& t) {
                        { t.elements() } -> std::same_as<std::span<const typename T::element>>;
                      });
/// A type whose rows differ in size. A batch pads these rows to one size, but stores lists one after the other, without
/// padding.
template <class T>
concept varying_item = ragged_item<T> || sized_item<T> || list_item<T>;

[[noreturn]] inline void throw_other_shape(std::size_t index, const std::string& shape, const std::string& first) {
  throw data_error(
      "element " + std::to_string(index) + " of an array has shape " + shape + ", but the first one has " + first,
      "Use one shape for all elements, or one column for each shape");
}

/// Several values of one column type in a row of shape [N, ...].
template <class T, std::size_t N>
  requires(N > 0 && !tensor_element<T> && fixed_column<T> && !varying_item<T>)
struct column_traits<std::array<T, N>> {
  using item_traits = column_traits<T>;
  using element = typename item_traits::element;
  static constexpr std::size_t rank = 1 + item_traits::rank;

  /// Throws data_error if the shapes of the elements differ.
  static std::array<std::size_t, rank> shape(const std::array<T, N>& items) {
    const std::array<std::size_t, item_traits::rank> first = item_traits::shape(items[0]);
    for (std::size_t i = 1; i < N; ++i)
      if (const std::array<std::size_t, item_traits::rank> other = item_traits::shape(items[i]); other != first)
        throw_other_shape(i, to_string(other), to_string(first));
    std::array<std::size_t, rank> all{N};
    for (std::size_t d = 0; d < first.size(); ++d) all[d + 1] = first[d];
    return all;
  }
  static std::span<element> row_of(std::size_t i, std::span<element> row) noexcept {
    return row.subspan(row.size() / N * i, row.size() / N);
  }
  static void render(const std::array<T, N>& items, std::span<element> row, scratch& s) {
    for (std::size_t i = 0; i < N; ++i) item_traits::render(items[i], row_of(i, row), s);
  }
};

template <ragged_item T>
  requires(!renders_with_scratch<T>)
struct column_traits<T> {
  using element = typename T::element;
  static constexpr std::size_t rank = T::rank;
  static auto shape(const T& item) { return item.shape(); }
};

template <class T>
concept renders_together = requires(std::span<const T* const> items,
                                    std::span<const std::span<typename T::element>> rows, scratch& s) {
  { T::together } -> std::convertible_to<std::size_t>;
  T::render_together(items, rows, s);
};

/// Returns the shape of a row of the column. Adds the name of the column to an error of column_traits::shape().
template <auto M>
auto column_shape(const member_type<M>& one) {
  try {
    return column_traits<member_type<M>>::shape(one);
  } catch (error& e) {
    e.add(" in " + named_column<M>());
    throw;
  }
}

/// A type that `batch` accepts as a column.
template <class T>
concept column_type = requires { typename detail::column_traits<T>::element; };

// Determines which columns of a batch render several rows at once, and which columns are rendered together.
//
//   static_assert(mr::detail::joins_groups<mr::picture>);
//   static_assert(mr::detail::rows_together<std::array<mr::picture, 8>, std::int32_t>() == mr::picture::together);
//
// item/column/columns.hpp describes groups. Errors: none. Threads: the functions are pure; any thread may call them.

/// A column type whose items join a group. The group renders the rows of all its items at once.
template <class T>
concept joins_groups = requires(const T& item, typename T::group& g, std::span<typename T::element> row, scratch& s) {
  item.join(g, row);
  g.clear();
  g.render(s);
};

/// The group type of a column type, or of the elements of an array. For a type without a group, the group type is void.
template <class T>
struct group_of {
  using type = void;
};
template <joins_groups T>
struct group_of<T> {
  using type = typename T::group;

  static void join(const T& item, type& g, std::span<typename T::element> row) { item.join(g, row); }
};
template <class T, std::size_t N>
  requires(!std::same_as<typename group_of<T>::type, void> && fixed_column<std::array<T, N>>)
struct group_of<std::array<T, N>> {
  using type = typename group_of<T>::type;
  using traits = column_traits<std::array<T, N>>;

  static void join(const std::array<T, N>& items, type& g, std::span<typename traits::element> row) {
    for (std::size_t i = 0; i < N; ++i) group_of<T>::join(items[i], g, traits::row_of(i, row));
  }
};

/// The element type of nested arrays; for any other type, T itself.
template <class T>
struct innermost {
  using type = T;
};
template <class T, std::size_t N>
struct innermost<std::array<T, N>> : innermost<T> {};

/// Returns the largest number of rows that one of these column types renders at once.
template <class... Columns>
constexpr std::size_t rows_together() {
  std::size_t largest = 1;
  const auto inspect = [&largest]<class T>(std::type_identity<T>) {
    if constexpr (renders_together<T> || (joins_groups<T> && requires { T::together; }))
      largest = T::together > largest ? T::together : largest;
  };
  (inspect(std::type_identity<typename innermost<Columns>::type>{}), ...);
  return largest;
}

/// Returns the name that reports use for the rendering of rows: a name that one of these column types defines, or else
/// "render".
template <class... Columns>
constexpr const char* rendering_name() {
  const char* name = "render";
  const auto inspect = [&name]<class T>(std::type_identity<T>) {
    if constexpr (requires { T::rendering; }) name = T::rendering;
  };
  (inspect(std::type_identity<typename innermost<Columns>::type>{}), ...);
  return name;
}

/// Returns whether M is the first column with its group type. When this column is rendered, its group renders all
/// columns with the same group type.
template <auto M, auto... Members>
constexpr bool begins_group() {
  bool is_found = false, first = false;
  const auto inspect = [&]<auto Other>(std::integral_constant<decltype(Other), Other>) {
    using group = typename group_of<member_type<M>>::type;
    if (is_found || !std::same_as<typename group_of<member_type<Other>>::type, group>) return;
    is_found = true;
    first = same_member<M, Other>();
  };
  (inspect(std::integral_constant<decltype(Members), Members>{}), ...);
  return first;
}

}}}   // namespace millrace::detail
