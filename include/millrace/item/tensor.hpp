// An owned, shaped array in host memory, and the element types that columns may have.
//
//   mr::tensor<float, 2> box({4, 2});      // [4, 2] f32, zeros
//   box(3, 1) = 0.5F;
//   std::span<float> all = box.span();
//
// Layout: row-major and contiguous. Threads: as std::vector. `image` is the tensor that pictures turn into.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/item/tensor_view.hpp>

#include <cassert>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace millrace::inline MILLRACE_ABI {

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

  template <class... Index>
    requires(sizeof...(Index) == N)
  T& operator()(Index... index) noexcept { return data_[offset({static_cast<std::size_t>(index)...})]; }
  template <class... Index>
    requires(sizeof...(Index) == N)
  const T& operator()(Index... index) const noexcept { return data_[offset({static_cast<std::size_t>(index)...})]; }

 private:
  static std::size_t count(const std::array<std::size_t, N>& shape) noexcept {
    std::size_t product = 1;
    for (const std::size_t extent : shape) product *= extent;
    return product;
  }
  std::size_t offset(const std::array<std::size_t, N>& index) const noexcept {
    std::size_t at = 0;
    for (std::size_t d = 0; d < N; ++d) {
      assert(index[d] < shape_[d]);
      at = at * shape_[d] + index[d];
    }
    return at;
  }

  std::array<std::size_t, N> shape_{};
  std::vector<T> data_;
};

/// Pixels in memory: [height, width, channels] u8.
using image = tensor<std::uint8_t, 3>;

}  // namespace millrace::inline MILLRACE_ABI
