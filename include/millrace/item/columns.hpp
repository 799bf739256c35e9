// What may be a column of a batch, and how items become columns (struct of arrays).
//
//   struct example { mr::picture pixels; std::int32_t label; };
//   using both = mr::columns<&example::pixels, &example::label>;    // [B, H, W, 3] u8 and [B] i32
//
// A column type is one of: a number; std::array<number, N>; std::vector<number>; bytes, such as a field of a record,
// which become u8 and are copied once, from where they were read to into their row; anything with shape() and span()
// (an image, a tensor); anything with `using element`, shape() and render(std::span<element> row) or
// render(row, scratch&). A type that renders several rows better than one also has `static constexpr std::size_t
// together` and `static void render_together(std::span<const T* const>, std::span<const std::span<element>>,
// scratch&)`, which is called with 2 to that many; the bits of a row must not depend on its partners.
// Shapes are fixed by the first item of a run: another shape later is a data_error that names both.
#pragma once

#include <millrace/item/bytes.hpp>
#include <millrace/item/scratch.hpp>
#include <millrace/item/tensor.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstring>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace millrace::inline MILLRACE_ABI {

namespace detail {

template <class T>
struct shape_rank;
template <std::size_t N>
struct shape_rank<std::array<std::size_t, N>> {
  static constexpr std::size_t value = N;
};

template <class T>
concept has_shape = requires(const T& t) {
  shape_rank<std::remove_cvref_t<decltype(t.shape())>>::value;
};
template <class T>
concept has_span = has_shape<T> && requires(const T& t) {
  { *t.span().data() } -> std::convertible_to<std::remove_cvref_t<decltype(*t.span().data())>>;
};
template <class T>
concept renders_with_scratch = has_shape<T> && requires(const T& t, std::span<typename T::element> row, scratch& s) {
  t.render(row, s);
};
template <class T>
concept renders_alone = has_shape<T> && requires(const T& t, std::span<typename T::element> row) {
  t.render(row);
};

/// How one member type lies in a batch: element type, rank of one row, shape of an item, writing of a row.
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

template <class T>
concept renders_together = requires(std::span<const T* const> items,
                                    std::span<const std::span<typename T::element>> rows, scratch& s) {
  { T::together } -> std::convertible_to<std::size_t>;
  T::render_together(items, rows, s);
};

template <class M>
struct member_pointer;
template <class T, class Owner>
struct member_pointer<T Owner::*> {
  using type = T;
  using owner = Owner;
};
template <auto M>
using member_type = typename member_pointer<decltype(M)>::type;
template <auto M>
using member_owner = typename member_pointer<decltype(M)>::owner;

template <auto A, auto B>
constexpr bool same_member() {
  if constexpr (std::same_as<decltype(A), decltype(B)>) return A == B;
  else return false;
}

/// "example::pixels", read off the compiler's own name of this function.
template <auto M>
constexpr auto spell_member() {
  constexpr std::string_view whole = __PRETTY_FUNCTION__;
  constexpr std::size_t start = whole.find("M = ") + 4;
  constexpr std::size_t end = whole.find_first_of("];", start);
  constexpr std::string_view full = whole.substr(start, end - start);
  constexpr std::string_view name = full.substr(full[0] == '(' || full[0] == '&' ? full.find('&') + 1 : 0);
  std::array<char, name.size() + 1> text{};
  for (std::size_t i = 0; i < name.size(); ++i) text[i] = name[i];
  return text;
}
template <auto M>
inline constexpr auto member_spelling = spell_member<M>();

}  // namespace detail

/// What `batch` accepts as a column.
template <class T>
concept column_type = requires {
  typename detail::column_traits<T>::element;
};

/// The columns of a batch, named by member pointers. Computes where each lies in a slot and writes rows into it.
template <auto... Members>
class columns {
 public:
  using item = std::tuple_element_t<0, std::tuple<detail::member_owner<Members>...>>;
  static constexpr std::size_t count = sizeof...(Members);

  /// The largest number of rows that one of the columns likes to have rendered at once.
  static constexpr std::size_t together = [] {
    std::size_t most = 1;
    const auto look = [&most]<class T>(std::type_identity<T>) {
      if constexpr (detail::renders_together<T>) most = T::together > most ? T::together : most;
    };
    (look(std::type_identity<detail::member_type<Members>>{}), ...);
    return most;
  }();

  /// What rendering is called in reports: as one of the columns calls its own.
  static constexpr const char* rendering = [] {
    const char* name = "render";
    const auto look = [&name]<class T>(std::type_identity<T>) {
      if constexpr (requires { T::rendering; }) name = T::rendering;
    };
    (look(std::type_identity<detail::member_type<Members>>{}), ...);
    return name;
  }();

  /// Fixes all shapes from the first item.
  void fix_shapes(const item& first, std::size_t rows) {
    rows_ = rows;
    bytes_ = 0;
    (fix<Members>(first), ...);
  }

  std::size_t rows() const noexcept { return rows_; }
  /// Bytes of one batch, every column aligned to 256 bytes.
  std::size_t batch_bytes() const noexcept { return bytes_; }

  /// Throws the data_error of a shape that differs from the first one's.
  void check_shapes(const item& one) const { (check<Members>(one), ...); }

  /// Writes items into consecutive rows of the batch at `base`, starting with row `first`.
  void render(std::span<const item* const> items, std::byte* base, std::size_t first, scratch& s) const {
    (render_column<Members>(items, base, first, s), ...);
  }

  template <auto M>
  auto view(std::byte* base, std::size_t rows, memory_kind memory) const noexcept {
    using traits = detail::column_traits<detail::member_type<M>>;
    const auto& place = std::get<index_of<M>()>(places_);
    tensor_view<typename traits::element, traits::rank + 1> v;
    v.data = reinterpret_cast<typename traits::element*>(base + place.offset_bytes);
    v.shape[0] = rows;
    for (std::size_t d = 0; d < traits::rank; ++d) v.shape[d + 1] = place.shape[d];
    v.memory = memory;
    v.name = detail::member_spelling<M>.data();
    return v;
  }
  auto views(std::byte* base, std::size_t rows, memory_kind memory) const noexcept {
    return std::tuple(view<Members>(base, rows, memory)...);
  }

  template <auto M>
  static constexpr bool holds = (detail::same_member<M, Members>() || ...);

  /// "example::pixels [256, 224, 224, 3] u8", one per column, for reports.
  std::string describe() const {
    std::string text;
    (describe_one<Members>(text), ...);
    return text;
  }

 private:
  template <auto M>
  struct column_place {
    std::array<std::size_t, detail::column_traits<detail::member_type<M>>::rank> shape{};
    std::size_t row_elements = 1;
    std::size_t offset_bytes = 0;
  };

  template <auto M>
  static constexpr std::size_t index_of() {
    std::size_t i = 0;
    static_cast<void>(((detail::same_member<M, Members>() || (++i, false)) || ...));
    return i;
  }

  template <auto M>
  void fix(const item& first) {
    using traits = detail::column_traits<detail::member_type<M>>;
    auto& place = std::get<index_of<M>()>(places_);
    place.shape = traits::shape(first.*M);
    place.row_elements = 1;
    for (const std::size_t extent : place.shape) place.row_elements *= extent;
    place.offset_bytes = bytes_;
    const std::size_t column_bytes = rows_ * place.row_elements * sizeof(typename traits::element);
    bytes_ += (column_bytes + 255) / 256 * 256;
  }

  template <auto M>
  void check(const item& one) const {
    using traits = detail::column_traits<detail::member_type<M>>;
    const auto& place = std::get<index_of<M>()>(places_);
    const auto shape = traits::shape(one.*M);
    if (shape == place.shape) return;
    throw data_error("the column " + std::string(detail::member_spelling<M>.data()) + " has shape " + to_string(shape) +
                         " here, but " + to_string(place.shape) + " in the first sample of the run",
                     "Bring every sample to one shape in map(), for instance by a crop or resize to a fixed size");
  }

  template <auto M>
  void render_column(std::span<const item* const> items, std::byte* base, std::size_t first, scratch& s) const {
    using type = detail::member_type<M>;
    using traits = detail::column_traits<type>;
    using element = typename traits::element;
    const auto& place = std::get<index_of<M>()>(places_);
    auto* const column = reinterpret_cast<element*>(base + place.offset_bytes);
    const auto row = [&](std::size_t i) {
      return std::span<element>(column + (first + i) * place.row_elements, place.row_elements);
    };
    if constexpr (detail::renders_together<type>) {
      std::array<const type*, type::together> members;
      std::array<std::span<element>, type::together> rows;
      for (std::size_t begin = 0; begin < items.size(); begin += type::together) {
        const std::size_t count = std::min<std::size_t>(type::together, items.size() - begin);
        for (std::size_t j = 0; j < count; ++j) {
          members[j] = &(items[begin + j]->*M);
          rows[j] = row(begin + j);
        }
        if (count == 1) traits::render(*members[0], rows[0], s);
        else type::render_together(std::span(members).first(count), std::span(rows).first(count), s);
      }
    } else {
      for (std::size_t i = 0; i < items.size(); ++i) traits::render(items[i]->*M, row(i), s);
    }
  }

  template <auto M>
  void describe_one(std::string& text) const {
    using traits = detail::column_traits<detail::member_type<M>>;
    std::array<std::size_t, traits::rank + 1> shape{rows_};
    std::copy_n(std::get<index_of<M>()>(places_).shape.begin(), traits::rank, shape.begin() + 1);
    text += (text.empty() ? "" : ", ") + std::string(detail::member_spelling<M>.data()) + " " + to_string(shape) + " " +
            std::string(dtype_name<typename traits::element>());
  }

  std::tuple<column_place<Members>...> places_{};
  std::size_t rows_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace millrace::inline MILLRACE_ABI
