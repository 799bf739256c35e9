// tensor_view: a typed, shaped view of a column of a batch, on the host or on a device.
//
//   mr::tensor_view<const std::uint8_t, 4> x = b.get<&example::pixels>();   // [B, H, W, C] u8
//   x.shape[1];                                // H
//   launch(x.data, x.size(), b.stream());      // any device
//
//   mr::tensor_view<std::int32_t, 1> labels = b.get<&example::label>();     // on the host:
//   labels[3] = 7;                             // one dimension: an element, read or written
//   x[3];                                      // more dimensions: row 3, a view of [H, W, C]
//   x(3, 0, 0, 2);                             // any number of dimensions: the element
//   for (auto label : labels) count(label);    // elements; for more dimensions: rows
//   std::span all = x.span();                  // all elements; with one dimension also std::span(labels)
//
// If the column is in GPU memory, x[3] and a loop over rows return views of GPU memory. The host cannot access their
// elements: span() throws in all builds, and access to an element throws in debug builds (without NDEBUG). Debug builds
// also check indices.
// A .cu file may include this header, because it is cheap to compile.
// Layout: row-major and contiguous. Lifetime: owns nothing and is valid until its batch is released.
#pragma once

#include <millrace/base/half.hpp>
#include <millrace/base/version.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <type_traits>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// bad_element_access: thrown in debug builds (without NDEBUG) for an index out of range, and for host access to an
// element in GPU memory. If the column is in GPU memory, `[]` of padded_view and list_view throws it in all builds.
//
//   try { labels[256] = 0; } catch (const std::exception& e) { std::puts(e.what()); }
//   // millrace: an index of the column example::label is out of range: got 256, expected less than 256. ...
//
// This class is not a millrace::error, because that would slow down the compilation of .cu files. If this exception
// leaves a callable of a flow, the run reports it as a stage_error with shard and key.
// Threads: not synchronized.

/// An element cannot be accessed: the index is out of range, or the element is in GPU memory.
class bad_element_access : public std::exception {
 public:
  /// Returns the message.
  const char* what() const noexcept override { return text_; }

  /// Returns the error of an index out of range. If `column` is empty, the message names "the tensor" instead of a
  /// column.
  static bad_element_access index(const char* column, std::size_t index, std::size_t extent) noexcept;
  /// Returns the error of a host access to GPU memory.
  static bad_element_access memory(const char* column) noexcept;

 private:
  bad_element_access() noexcept { add("millrace: "); }

  bad_element_access& add(const char* text) noexcept;
  bad_element_access& add_name(const char* column) noexcept;
  bad_element_access& add_number(std::size_t number) noexcept;

  char text_[512];
  std::size_t size_ = 0;
};

/// Checks an index in debug builds, except in GPU kernels, which cannot throw.
constexpr void check_tensor_index([[maybe_unused]] const char* column, [[maybe_unused]] std::size_t index,
                                  [[maybe_unused]] std::size_t extent) {
#if !defined NDEBUG && !defined __CUDA_ARCH__
  if (index >= extent) throw bad_element_access::index(column, index, extent);
#endif
}

/// Iterates over the rows of a view or tensor with 2 or more dimensions. Rows are views.
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

}}}   // namespace millrace::detail

namespace millrace { inline namespace MILLRACE_ABI {

/// The processor that can read a piece of memory: the host or the device.
enum class memory_kind : std::uint8_t { host, device };

template <class T, std::size_t N>
struct tensor_view;

namespace detail {

template <class T, std::size_t N>
[[noreturn]] void throw_not_on_host(const tensor_view<T, N>& view);   // item/tensor/tensor.hpp

/// Returns the row-major offset of an element. Checks the indices in debug builds, except in GPU kernels.
template <std::size_t N>
constexpr std::size_t element_offset(const std::array<std::size_t, N>& index, const std::array<std::size_t, N>& shape,
                                     const char* column) {
  std::size_t at = 0;
  for (std::size_t d = 0; d < N; ++d) {
    check_tensor_index(column, index[d], shape[d]);
    at = at * shape[d] + index[d];
  }
  return at;
}

}   // namespace detail

/// A non-owning view of an array with N dimensions.
template <class T, std::size_t N>
struct tensor_view {
  using element = T;
  static constexpr std::size_t rank = N;

  T* data = nullptr;
  std::array<std::size_t, N> shape{};
  memory_kind memory = memory_kind::host;
  const char* name = "";   ///< name of the column; a string that lives as long as the program

  /// Returns the number of elements.
  constexpr std::size_t size() const noexcept {
    std::size_t product = 1;
    for (const std::size_t extent : shape) product *= extent;
    return product;
  }
  /// Returns the number of bytes of all elements.
  constexpr std::size_t size_bytes() const noexcept { return size() * sizeof(T); }

  /// Returns all elements. Throws setup_error if the host cannot read them.
  std::span<T> host() const {
    if (memory != memory_kind::host) detail::throw_not_on_host(*this);
    return {data, size()};
  }

  /// Converts to a view of const elements.
  template <class Same>   // a template, because nvcc warns about a conversion of a type to itself
    requires(std::is_same_v<Same, T> && !std::is_const_v<T>)
  constexpr operator tensor_view<const Same, N>() const noexcept {
    return {.data = data, .shape = shape, .memory = memory, .name = name};
  }

  /// Returns host().
  std::span<T> span() const { return host(); }

  /// Returns element `i`.
  constexpr T& operator[](std::size_t i) const
    requires(N == 1)
  {
    return (*this)(i);
  }
  /// Returns row `i` of the first dimension as a view.
  constexpr tensor_view<T, N - 1> operator[](std::size_t i) const
    requires(N > 1)
  {
    detail::check_tensor_index(name, i, shape[0]);
    return *detail::row_iterator(first_row(), i);
  }
  /// Returns the element at these indices, one for each dimension.
  template <class... Index>
    requires(sizeof...(Index) == N)
  constexpr T& operator()(Index... index) const {
    check_readable();
    return data[detail::element_offset<N>({static_cast<std::size_t>(index)...}, shape, name)];
  }

  /// Returns an iterator over the elements if there is one dimension, else over the rows.
  constexpr auto begin() const {
    if constexpr (N == 1) {
      check_readable();
      return data;
    } else {
      return detail::row_iterator(first_row(), 0);
    }
  }
  /// Returns the end of the range that begin() starts.
  constexpr auto end() const {
    if constexpr (N == 1) return data + shape[0];
    else return detail::row_iterator(first_row(), shape[0]);
  }

 private:
  constexpr tensor_view<T, N - 1> first_row() const noexcept {
    tensor_view<T, N - 1> row{.data = data, .shape = {}, .memory = memory, .name = name};
    for (std::size_t d = 1; d < N; ++d) row.shape[d - 1] = shape[d];
    return row;
  }
  constexpr void check_readable() const {
#if !defined NDEBUG && !defined __CUDA_ARCH__
    if (memory != memory_kind::host) throw detail::bad_element_access::memory(name);
#endif
  }
};

// padded_view: a typed view of a ragged column of a batch. It has the rows, padded to one length, and the real lengths
// of the rows.
//
//   auto [words, lengths] = b.get<&example::words>();    // [B, longest of this batch] u32 and [B] i32
//   words(i, t);                                         // padding if t >= lengths[i]; words.span() includes padding
//   for (auto word : b.get<&example::words>()[i]) use(word);    // row i without its padding
//
// A .cu file may include this header, because it is cheap to compile.
// Layout: the same as for tensor_view. `values` and `lengths` are on the same device. Lifetime: owns nothing and is
// valid until its batch is released.

/// The padded rows of a ragged column, and the length of each row.
template <class T, std::size_t N>
struct padded_view {
  tensor_view<T, N> values{};               ///< [rows, longest, ...]
  tensor_view<std::int32_t, 1> lengths{};   ///< [rows]: length of each row without its padding

  /// Returns row `i` without its padding. Throws bad_element_access in every build if the column is in GPU memory,
  /// where the host cannot read the length.
  tensor_view<T, N - 1> operator[](std::size_t i) const {
    if (lengths.memory != memory_kind::host) throw detail::bad_element_access::memory(lengths.name);
    tensor_view<T, N - 1> row = values[i];
    row.shape[0] = static_cast<std::size_t>(lengths[i]);
    return row;
  }
  // clang-format off
  /// Declared only for its error message, which names the spans with and without padding.
  __attribute__((unavailable("millrace: a ragged column has padding: got words.span(), expected the span of a row. Use "
                             "words[i].span() for row i without it, words.values.span() for all rows with it.")))
  std::span<T> span() const;
  // clang-format on
};

// sized_view: a typed view of a column whose rows vary in height and width. Rows are padded to the largest height and
// width in the batch.
//
//   auto [pixels, sizes] = b.get<&example::pixels>();    // u8 [B, tallest, widest, 3] and i32 [B, 2]: height, width
//   if (y < sizes(i, 0) && x < sizes(i, 1)) use(pixels(i, y, x, 0));         // the rest is padding
//
// A .cu file may include this header, because it is cheap to compile.
// Layout: the same as for tensor_view. `values` and `sizes` are on the same device. Lifetime: owns nothing and is
// valid until its batch is released.

/// The padded rows of a column whose rows vary in height and width, and the height and width of each row.
template <class T, std::size_t N>
struct sized_view {
  tensor_view<T, N> values{};             ///< [rows, tallest, widest, ...]
  tensor_view<std::int32_t, 2> sizes{};   ///< [rows, 2]: height and width of each row without its padding
};

// list_view: a typed view of a column of lists. The view has the items of all rows without padding, and the index of
// the first item of each row.
//
//   auto [pixels, offsets] = b.get<&example::pictures>();    // u8 [total, H, W, 3] and i32 [B + 1]
//   for (int n = offsets[i]; n < offsets[i + 1]; ++n) use(pixels[n]);        // the images of row i
//   for (auto image : b.get<&example::pictures>()[i]) use(image);            // the same images
//
// A .cu file may include this header, because it is cheap to compile.
// Layout: the same as for tensor_view. `values` and `offsets` are on the same device. Lifetime: owns nothing and is
// valid until its batch is released.

/// The items of a column of lists.
template <class T, std::size_t N>
struct list_view {
  tensor_view<T, N> values{};               ///< [total, ...]: the items of row 0, of row 1, and so on
  tensor_view<std::int32_t, 1> offsets{};   ///< [rows + 1]: index of the first item of each row, then `total`

  /// Returns the items of row `i`. Throws bad_element_access in every build if the column is in GPU memory, where the
  /// host cannot read the offsets.
  tensor_view<T, N> operator[](std::size_t i) const {
    if (offsets.memory != memory_kind::host) throw detail::bad_element_access::memory(offsets.name);
    const auto first = static_cast<std::size_t>(offsets[i]);
    tensor_view<T, N> row = values;
    row.shape[0] = static_cast<std::size_t>(offsets[i + 1]) - first;
    row.data += first * (values.shape[0] > 0 ? values.size() / values.shape[0] : 0);
    return row;
  }
};

}}   // namespace millrace

// A tensor_view is a view and a borrowed range. With N > 1 it is not a sized range, because size() counts elements and
// not rows.
template <class T, std::size_t N>
inline constexpr bool std::ranges::enable_view<millrace::tensor_view<T, N>> = true;
template <class T, std::size_t N>
inline constexpr bool std::ranges::enable_borrowed_range<millrace::tensor_view<T, N>> = true;
template <class T, std::size_t N>
inline constexpr bool std::ranges::disable_sized_range<millrace::tensor_view<T, N>> = N > 1;

#ifndef MILLRACE_COMPILED
#include <millrace/item/tensor/impl/tensor_view.inl>
#endif
