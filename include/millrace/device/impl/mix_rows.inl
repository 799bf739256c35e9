// Definitions for mix_rows.hpp.
#pragma once

#include <millrace/device/mix_rows.hpp>

#include <millrace/simd/cpu_features.hpp>
#include <millrace/simd/words.hpp>

#include <algorithm>
#include <cstring>

#define MILLRACE_KERNELS <millrace/device/mix_body.inc>
#include <millrace/simd/for_each_layer.inc>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

template <class T>
void mix_row_scalar(T* first, T* second, std::size_t count, const mix_weights& w) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const T a = first[i], b = second[i];
    first[i] = mixed_element(a, b, w);
    second[i] = mixed_element(b, a, w);
  }
}

template <class T>
void mix_rows_run(T* first, T* second, std::size_t count, const mix_weights& w) noexcept {
  if (w.other == 0) return;
  std::size_t done = 0;
#if defined __x86_64__ || defined __aarch64__
  if (cpu_has_word_layer()) done = word_layer::run_mix_rows_kernel(first, second, count, w);
#endif
  mix_row_scalar(first + done, second + done, count - done, w);
}

MILLRACE_INLINE void mix_elements(std::uint8_t* first, std::uint8_t* second, std::size_t count,
                                  const mix_weights& w) noexcept {
  mix_rows_run(first, second, count, w);
}
MILLRACE_INLINE void mix_elements(float* first, float* second, std::size_t count, const mix_weights& w) noexcept {
  mix_rows_run(first, second, count, w);
}
MILLRACE_INLINE void mix_elements(f16* first, f16* second, std::size_t count, const mix_weights& w) noexcept {
  mix_rows_run(first, second, count, w);
}
MILLRACE_INLINE void mix_elements(bf16* first, bf16* second, std::size_t count, const mix_weights& w) noexcept {
  mix_rows_run(first, second, count, w);
}

MILLRACE_INLINE void swap_mixed_bytes(std::byte* first, std::byte* second, std::size_t count) noexcept {
  std::byte block[512];   // a block of the first run
  for (std::size_t done = 0; done < count; done += sizeof block) {
    const std::size_t piece = std::min(sizeof block, count - done);
    std::memcpy(block, first + done, piece);
    std::memcpy(first + done, second + done, piece);
    std::memcpy(second + done, block, piece);
  }
}

}}}   // namespace millrace::detail

#include <millrace/simd/precise_end.inc>
