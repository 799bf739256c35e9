// Determines which columns of a batch are rendered several rows at a time, or together with other columns.
//
//   static_assert(mr::detail::joins_groups<mr::picture>);
//   static_assert(mr::detail::rows_together<std::array<mr::picture, 8>, std::int32_t>() == mr::picture::together);
//
// item/column/columns.hpp describes groups. Errors: none. Threads: the functions are pure; any thread may call them.
#pragma once

#include <millrace/item/column/column_traits.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

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

/// Returns whether M is the first column with its group type. This column renders for all columns with that type.
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
