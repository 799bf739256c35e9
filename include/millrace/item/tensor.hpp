// An owned, shaped array in host memory, and the element types that columns may have.
//
//   mr::tensor<float, 2> box({4, 2});      // [4, 2] f32, zeros
//   box(3, 1) = 0.5F;                      // an element; of a tensor of rank 1 box[3] as well
//   box[3];                                // row 3, a view; for (auto row : box) goes through all
//   std::span<float> all = box.span();
//
// Layout: row-major and contiguous. Indices are checked in debug builds. Threads: as std::vector. `image` is the tensor
// that pictures turn into.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/item/tensor_view.hpp>

#include <cassert>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// Shapes as people write them: "[224, 224, 3]".
template <std::size_t N>
std::string to_string(const std::array<std::size_t, N>& shape) {
  std::string text = "[";
  for (std::size_t d = 0; d < N; ++d) text += (d ? ", " : "") + std::to_string(shape[d]);
  return text + "]";
}

template <class T, std::size_t N>
[[noreturn]] void throw_not_on_host(const tensor_view<T, N>& view) {
  throw setup_error("the column " + std::string(view.name) + " lies in GPU memory, which the host cannot read",
                    "Copy it to the host first, or use to_device({.device = host_device()})");
}

/// What a column's element may be: a number of fixed size, or f16 / bf16.
template <class T>
concept tensor_element = std::is_arithmetic_v<T> || std::is_same_v<T, f16> || std::is_same_v<T, bf16>;

/// "u8", "i64", "f32", ... for messages.
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

template <tensor_element T, std::size_t N>
class tensor {
 public:
  using element = T;
  static constexpr std::size_t rank = N;

  tensor() = default;
  explicit tensor(std::array<std::size_t, N> shape) : shape_(shape), data_(count(shape)) {}
  /// Of elements that are there, as many as the shape has.
  tensor(std::array<std::size_t, N> shape, std::vector<T> elements) noexcept
      : shape_(shape), data_(std::move(elements)) {
    assert(data_.size() == count(shape));
  }

  const std::array<std::size_t, N>& shape() const noexcept { return shape_; }
  std::size_t size() const noexcept { return data_.size(); }
  std::span<T> span() noexcept { return {data_.data(), data_.size()}; }
  std::span<const T> span() const noexcept { return {data_.data(), data_.size()}; }
  T* data() noexcept { return data_.data(); }
  const T* data() const noexcept { return data_.data(); }

  /// All of it.
  tensor_view<T, N> view() noexcept { return {.data = data(), .shape = shape_}; }
  tensor_view<const T, N> view() const noexcept { return {.data = data(), .shape = shape_}; }

  /// Of rank 1 element `i`, of higher ranks row `i` of the first dimension, a view.
  decltype(auto) operator[](std::size_t i) { return view()[i]; }
  decltype(auto) operator[](std::size_t i) const { return view()[i]; }
  /// The element at these indices, one for each dimension.
  template <class... Index>
    requires(sizeof...(Index) == N)
  T& operator()(Index... index) { return view()(index...); }
  template <class... Index>
    requires(sizeof...(Index) == N)
  const T& operator()(Index... index) const { return view()(index...); }

  /// Elements of rank 1, rows of higher ranks.
  auto begin() noexcept { return view().begin(); }
  auto begin() const noexcept { return view().begin(); }
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

/// Pixels in memory: [height, width, channels] u8.
using image = tensor<std::uint8_t, 3>;

}}  // namespace millrace

template <class T, std::size_t N>
inline constexpr bool std::ranges::disable_sized_range<millrace::tensor<T, N>> = N > 1;   // size() counts elements
