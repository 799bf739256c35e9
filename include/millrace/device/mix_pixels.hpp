// Mixes the elements of two rows in place on the host, by mixup or cutmix.
//
//   const mr::detail::row_grid grid{.planes = 1, .height = 224, .width = 224, .channels = 3};    // [224, 224, 3]
//   mr::detail::mix_pixels(first, second, grid, how);
//
// The function reads and writes each of the two rows once. item/column/row_mix.hpp defines the formulas. Every CPU,
// compiler and code path computes the same bits. The code uses NEON, or AVX2 if the CPU supports it.
// Errors: none. Threads: any; calls share no state.
#pragma once

#include <millrace/device/row_grid.hpp>
#include <millrace/item/column/row_mix.hpp>

#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Mixes two sequences of `count` elements with each other, in place.
void mix_elements(std::uint8_t* first, std::uint8_t* second, std::size_t count, const mix_weights& w) noexcept;
void mix_elements(float* first, float* second, std::size_t count, const mix_weights& w) noexcept;
void mix_elements(f16* first, f16* second, std::size_t count, const mix_weights& w) noexcept;
void mix_elements(bf16* first, bf16* second, std::size_t count, const mix_weights& w) noexcept;

/// Swaps two sequences of bytes.
void swap_bytes(std::byte* first, std::byte* second, std::size_t count) noexcept;

/// Mixes two rows with each other, in place, according to the row_mix of the pair.
template <mixable_element T>
void mix_pixels(T* first, T* second, const row_grid& grid, const row_mix& how) noexcept {
  if (how.weight != row_mix::full_weight) return mix_elements(first, second, grid.elements(), mix_weights(how.weight));
  const std::size_t line = grid.width * grid.channels;
  const std::size_t begin = how.left * grid.channels, end = how.right * grid.channels;
  for (std::size_t plane = 0; begin < end && plane < grid.planes; ++plane)
    for (std::size_t y = how.top; y < how.bottom; ++y) {
      const std::size_t at = (plane * grid.height + y) * line + begin;
      swap_bytes(reinterpret_cast<std::byte*>(first + at), reinterpret_cast<std::byte*>(second + at),
                 (end - begin) * sizeof(T));
    }
}

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/device/impl/mix_pixels.inl>
#endif
