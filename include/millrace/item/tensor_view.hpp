// A typed, shaped view of a column of a batch, on the host or on a device. Light: a .cu file may include it.
//
//   mr::tensor_view<const std::uint8_t, 4> x = b.get<&example::pixels>();   // [B, H, W, C] u8
//   x.shape[1];                       // H
//   launch(x.data, x.size(), stream); // any device
//   x.host()[i];                      // the elements; throws setup_error on GPU memory, naming the column
//
// Layout: row-major and contiguous. Owns nothing: valid until its batch is released.
#pragma once

#include <millrace/base/version.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace millrace::inline MILLRACE_ABI {

/// IEEE binary16, as bits.
struct f16 {
  std::uint16_t bits;
  friend constexpr bool operator==(f16, f16) = default;
};
/// bfloat16 (the upper half of an f32), as bits.
struct bf16 {
  std::uint16_t bits;
  friend constexpr bool operator==(bf16, bf16) = default;
};

/// Which processor can read a piece of memory.
enum class memory_kind : std::uint8_t { host, device };

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

  /// Row `i` of the first dimension; the same rule as host().
  tensor_view<T, N - 1> operator[](std::size_t i) const noexcept requires(N > 1) {
    tensor_view<T, N - 1> row{.data = data, .shape = {}, .memory = memory, .name = name};
    for (std::size_t d = 1; d < N; ++d) row.shape[d - 1] = shape[d];
    row.data += i * row.size();
    return row;
  }
};

}  // namespace millrace::inline MILLRACE_ABI
