// A typed, shaped view of a column of a batch, on the host or on a device. Light: a .cu file may include it.
//
//   mr::tensor_view<const std::uint8_t, 4> x = b.get<&example::pixels>();   // [B, H, W, C] u8
//   x.shape[1];                       // H
//   launch(x.data, x.size(), stream); // any device
//
//   mr::tensor_view<std::int32_t, 1> labels = b.get<&example::label>();     // on the host:
//   labels[3] = 7;                    // rank 1: an element, read or written
//   x[3];                             // higher ranks: row 3, a view of [H, W, C]
//   x(3, 0, 0, 2);                    // any rank: the element
//   for (auto label : labels) ...     // elements; of higher ranks rows
//   std::span all = x.span();         // all elements; std::span(labels) as well
//
// On GPU memory x[3] and a loop over rows give views of it; elements cannot be had there: span() throws, and the others
// do in debug builds (without NDEBUG), where indices are checked too.
// Layout: row-major and contiguous. Owns nothing: valid until its batch is released.
#pragma once

#include <millrace/base/half.hpp>
#include <millrace/item/bad_element_access.hpp>
#include <millrace/item/row_iterator.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace millrace { inline namespace MILLRACE_ABI {

/// Which processor can read a piece of memory.
enum class memory_kind : std::uint8_t { host, device };

namespace detail {

/// Row-major. Indices are checked in debug builds, those of a kernel never.
template <std::size_t N>
constexpr std::size_t element_offset(const std::array<std::size_t, N>& index, const std::array<std::size_t, N>& shape,
                                     const char* column) {
  std::size_t at = 0;
  for (std::size_t d = 0; d < N; ++d) {
    check_index(column, index[d], shape[d]);
    at = at * shape[d] + index[d];
  }
  return at;
}

}  // namespace detail

template <class T, std::size_t N>
struct tensor_view {
  using element = T;
  static constexpr std::size_t rank = N;

  T* data = nullptr;
  std::array<std::size_t, N> shape{};
  memory_kind memory = memory_kind::host;
  const char* name = "";   ///< of the column; lives as long as the program

  constexpr std::size_t size() const noexcept {
    std::size_t product = 1;
    for (const std::size_t extent : shape) product *= extent;
    return product;
  }
  constexpr std::size_t size_bytes() const noexcept { return size() * sizeof(T); }

  /// The elements, where the host can read them.
  std::span<T> host() const {
    if (memory != memory_kind::host) throw_not_on_host(*this);   // defined in item/tensor.hpp
    return {data, size()};
  }

  /// The same view, for functions that only read.
  template <class Same>   // a template, because nvcc warns about a conversion of a type to itself
    requires(std::is_same_v<Same, T> && !std::is_const_v<T>)
  constexpr operator tensor_view<const Same, N>() const noexcept {
    return {.data = data, .shape = shape, .memory = memory, .name = name};
  }

  /// All elements, as those of a tensor; the same as host().
  std::span<T> span() const { return host(); }

  /// Element `i`.
  constexpr T& operator[](std::size_t i) const requires(N == 1) { return (*this)(i); }
  /// Row `i` of the first dimension.
  constexpr tensor_view<T, N - 1> operator[](std::size_t i) const requires(N > 1) {
    detail::check_index(name, i, shape[0]);
    return *row_iterator(first_row(), i);
  }
  /// The element at these indices, one for each dimension.
  template <class... Index>
    requires(sizeof...(Index) == N)
  constexpr T& operator()(Index... index) const {
    check_readable();
    return data[detail::element_offset<N>({static_cast<std::size_t>(index)...}, shape, name)];
  }

  /// Elements of rank 1, rows of higher ranks.
  constexpr auto begin() const {
    if constexpr (N == 1) {
      check_readable();
      return data;
    } else {
      return row_iterator(first_row(), 0);
    }
  }
  constexpr auto end() const {
    if constexpr (N == 1) return data + shape[0];
    else return row_iterator(first_row(), shape[0]);
  }

 private:
  constexpr tensor_view<T, N - 1> first_row() const noexcept {
    tensor_view<T, N - 1> row{.data = data, .shape = {}, .memory = memory, .name = name};
    for (std::size_t d = 1; d < N; ++d) row.shape[d - 1] = shape[d];
    return row;
  }
  constexpr void check_readable() const {
#if !defined NDEBUG && !defined __CUDA_ARCH__
    if (memory != memory_kind::host) throw bad_element_access::memory(name);
#endif
  }
};

}}  // namespace millrace

// A view is no more than a pointer with a shape. Of its rows it knows the number, but size() counts elements.
template <class T, std::size_t N>
inline constexpr bool std::ranges::enable_view<millrace::tensor_view<T, N>> = true;
template <class T, std::size_t N>
inline constexpr bool std::ranges::enable_borrowed_range<millrace::tensor_view<T, N>> = true;
template <class T, std::size_t N>
inline constexpr bool std::ranges::disable_sized_range<millrace::tensor_view<T, N>> = N > 1;
