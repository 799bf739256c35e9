// The inner loop of the example networks: out += left x right, for small dense matrices.
//
//   network_kernel::multiply_add<float>({.out = c, .left = a, .right = b, .rows = 32, .columns = 16, .depth = 27,
//                                        .left_row = 27, .left_depth = 1});
//
// `out` is [rows, columns] and `right` [depth, columns], both contiguous. left(r, d) is at r * left_row + d *
// left_depth, so that overlapping and transposed matrices need no copy. `columns` is a multiple of 16. Compiled twice,
// for all processors and for those with AVX2 and FMA, and selected at run time.
// Threads: pure.
#pragma once

#include <cstddef>
#include <cstring>

namespace network_kernel {

template <class Real>
struct product {
  Real* out = nullptr;
  const Real* left = nullptr;
  const Real* right = nullptr;
  std::size_t rows = 0, columns = 0, depth = 0;
  std::size_t left_row = 0, left_depth = 0;
};

/// Computes `Rows` rows by two vectors of `out`, which stay in registers during the loop over `depth`. For that, g++
/// needs explicit unrolling of the loops over rows.
template <class Real, std::size_t Rows>
[[gnu::always_inline]] inline void tile(const product<Real>& p, std::size_t row, std::size_t column) {
  typedef Real vector __attribute__((vector_size(32)));
  typedef Real unaligned __attribute__((vector_size(32), aligned(sizeof(Real)), may_alias));
  constexpr std::size_t lanes = 32 / sizeof(Real);
  const std::size_t depth = p.depth, left_row = p.left_row, left_depth = p.left_depth, columns = p.columns;
  const auto at = [](auto* numbers) { return reinterpret_cast<unaligned*>(const_cast<Real*>(numbers)); };
  Real* const out = p.out + row * columns + column;
  const Real* a = p.left + row * left_row;
  const Real* right = p.right + column;
  vector low[Rows], high[Rows];
#pragma GCC unroll 4
  for (std::size_t r = 0; r < Rows; ++r) {
    low[r] = *at(out + r * columns);
    high[r] = *at(out + r * columns + lanes);
  }
  for (std::size_t d = 0; d < depth; ++d, a += left_depth, right += columns) {
    const vector b_low = *at(right), b_high = *at(right + lanes);
#pragma GCC unroll 4
    for (std::size_t r = 0; r < Rows; ++r) {
      const vector value = vector{} + a[r * left_row];
      low[r] += value * b_low;
      high[r] += value * b_high;
    }
  }
#pragma GCC unroll 4
  for (std::size_t r = 0; r < Rows; ++r) {
    *at(out + r * columns) = low[r];
    *at(out + r * columns + lanes) = high[r];
  }
}

template <class Real>
[[gnu::always_inline]] inline void all_tiles(const product<Real>& p) {
  for (std::size_t column = 0; column < p.columns; column += 64 / sizeof(Real)) {
    std::size_t row = 0;
    for (; row + 4 <= p.rows; row += 4) tile<Real, 4>(p, row, column);
    for (; row < p.rows; ++row) tile<Real, 1>(p, row, column);
  }
}

#if defined(__x86_64__)
template <class Real>
__attribute__((target("avx2,fma"))) void multiply_add_avx2(const product<Real>& p) {
  all_tiles(p);
}
#endif

template <class Real>
void multiply_add(const product<Real>& p) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return multiply_add_avx2(p);
#endif
  all_tiles(p);
}

}   // namespace network_kernel
