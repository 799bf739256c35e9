// tensor: an N-dimensional array that owns its elements in host memory. Also defines the element types of columns.
//
//   mr::tensor<float, 2> box({4, 2});      // [4, 2] f32, zeros
//   box(3, 1) = 0.5F;                      // an element
//   box[3];                                // row 3, a view; for (auto row : box) iterates over all rows
//   std::span<float> all = box.span();
//
// Layout: row-major and contiguous. Indices are checked in debug builds. `image` is the tensor type of decoded images.
// Threads: the same rules as for std::vector.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/base/version.hpp>
#include <millrace/item/tensor/tensor_view.hpp>

#include <cassert>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Texts about a column of any type, for reports and errors.
//
//   mr::detail::shape_text(shape);                                        // "[224, 224, 3]"
//   mr::detail::column_text({.name = "example::pixels", .rows = 256, .row = shape, .dtype = "u8"});
//
// Errors: none. Threads: the functions are pure; any thread may call them.

/// The properties of a column in a report.
struct column_facts {
  std::string_view name;
  bool ragged = false;
  std::size_t rows = 0;
  std::span<const std::size_t> row;   ///< shape of a row
  std::string_view dtype;
};

/// Returns a shape as text: "[224, 224, 3]".
std::string shape_text(std::span<const std::size_t> shape);
/// Returns "example::pixels [256, 224, 224, 3] u8".
std::string column_text(const column_facts& of);
/// Throws the data_error for a row whose shape differs from that of the first sample.
[[noreturn]] void throw_other_shape(std::string_view column, std::span<const std::size_t> here,
                                    std::span<const std::size_t> first);

}}}   // namespace millrace::detail

namespace millrace { inline namespace MILLRACE_ABI {

/// Returns a shape as text: "[224, 224, 3]".
template <std::size_t N>
std::string to_string(const std::array<std::size_t, N>& shape) {
  return detail::shape_text(shape);
}

namespace detail {

/// Throws the setup_error for a view whose elements are in GPU memory.
template <class T, std::size_t N>
[[noreturn]] void throw_not_on_host(const tensor_view<T, N>& view) {
  throw setup_error("the column " + std::string(view.name) + " is in GPU memory, which the host cannot read",
                    "Copy the batch with to_host() first, or use to_device({.device = host_device()})");
}

/// An element type of a column: an arithmetic type of C++, f16 or bf16.
template <class T>
concept tensor_element = std::is_arithmetic_v<T> || std::is_same_v<T, f16> || std::is_same_v<T, bf16>;

/// Returns the name of T: "u8", "i64", "f32", ...
template <tensor_element T>
constexpr std::string_view dtype_name() noexcept {
  if constexpr (std::is_same_v<T, f16>) return "f16";
  else if constexpr (std::is_same_v<T, bf16>) return "bf16";
  else if constexpr (std::is_same_v<T, bool>) return "bool";
  else if constexpr (std::is_floating_point_v<T>) return sizeof(T) == 4 ? "f32" : "f64";
  else if constexpr (sizeof(T) == 1) return std::is_signed_v<T> ? "i8" : "u8";
  else if constexpr (sizeof(T) == 2) return std::is_signed_v<T> ? "i16" : "u16";
  else if constexpr (sizeof(T) == 4) return std::is_signed_v<T> ? "i32" : "u32";
  else return std::is_signed_v<T> ? "i64" : "u64";
}

}   // namespace detail

/// An N-dimensional array that owns its elements in host memory.
template <detail::tensor_element T, std::size_t N>
class tensor {
 public:
  using element = T;
  static constexpr std::size_t rank = N;

  /// Creates a tensor without elements.
  tensor() = default;
  /// Creates a tensor of zeros.
  explicit tensor(std::array<std::size_t, N> shape) : shape_(shape), data_(count(shape)) {}
  /// Moves `elements` into the tensor; their number must match the shape.
  tensor(std::array<std::size_t, N> shape, std::vector<T> elements) noexcept
      : shape_(shape), data_(std::move(elements)) {
    assert(data_.size() == count(shape));
  }

  /// Returns the shape.
  const std::array<std::size_t, N>& shape() const noexcept { return shape_; }
  /// Returns the number of elements.
  std::size_t size() const noexcept { return data_.size(); }
  /// Returns all elements, row-major.
  std::span<T> span() noexcept { return {data_.data(), data_.size()}; }
  std::span<const T> span() const noexcept { return {data_.data(), data_.size()}; }
  /// Returns a pointer to the first element.
  T* data() noexcept { return data_.data(); }
  const T* data() const noexcept { return data_.data(); }

  /// Returns a view of the complete tensor; valid while the tensor lives.
  tensor_view<T, N> view() noexcept { return {.data = data(), .shape = shape_}; }
  tensor_view<const T, N> view() const noexcept { return {.data = data(), .shape = shape_}; }

  /// Returns element `i` if there is one dimension, else a view of row `i`.
  decltype(auto) operator[](std::size_t i) { return view()[i]; }
  decltype(auto) operator[](std::size_t i) const { return view()[i]; }
  /// Returns the element at these indices, one for each dimension.
  template <class... Index>
    requires(sizeof...(Index) == N)
  T& operator()(Index... index) {
    return view()(index...);
  }
  template <class... Index>
    requires(sizeof...(Index) == N)
  const T& operator()(Index... index) const {
    return view()(index...);
  }

  /// Returns an iterator over the elements if there is one dimension, else over the rows.
  auto begin() noexcept { return view().begin(); }
  auto begin() const noexcept { return view().begin(); }
  /// Returns the end of the range that begin() starts.
  auto end() noexcept { return view().end(); }
  auto end() const noexcept { return view().end(); }

 private:
  static std::size_t count(const std::array<std::size_t, N>& shape) noexcept {
    std::size_t product = 1;
    for (const std::size_t extent : shape) product *= extent;
    return product;
  }

  std::array<std::size_t, N> shape_{};
  std::vector<T> data_;
};

/// Pixels in memory: `[height, width, channels] u8`.
using image = tensor<std::uint8_t, 3>;

}}   // namespace millrace

template <class T, std::size_t N>
inline constexpr bool std::ranges::disable_sized_range<millrace::tensor<T, N>> = N > 1;   // size() != number of rows

#ifndef MILLRACE_COMPILED
#include <millrace/item/tensor/impl/tensor.inl>
#endif
