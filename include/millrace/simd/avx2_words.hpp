// Defines the operations of an inverse DCT on AVX2 registers of sixteen 16-bit or eight 32-bit numbers.
//
//   using namespace mr::detail::avx2;
//   [[gnu::target("avx2")]] quads eight_sums(const std::int16_t* pairs) {   // aligned to 32 bytes
//     return multiply_pairs(load(pairs), pair_of(3, -5));                   // 3 a - 5 b for each pair (a, b)
//   }
//
// The code uses vector types of the compiler instead of <immintrin.h>, which would increase the library's compile time
// by an eighth. All functions are inlined, and may be called only from functions with the same target. In the comments
// below, a half is 128 bits of a register.
// Threads: any; all functions except stores are pure.
#pragma once

#include <millrace/base/version.hpp>

#include <cstdint>
#include <cstring>

#ifdef __x86_64__

namespace millrace { inline namespace MILLRACE_ABI { namespace detail { namespace avx2 {

using words [[gnu::vector_size(32)]] = std::int16_t;
using quads [[gnu::vector_size(32)]] = std::int32_t;
using octs [[gnu::vector_size(32)]] = long long;
using bytes [[gnu::vector_size(32)]] = char;

#define MILLRACE_AVX2 [[gnu::target("avx2"), gnu::always_inline]] inline

MILLRACE_AVX2 words load(const std::int16_t* from) noexcept {   // 32 bytes, aligned to 32
  return *static_cast<const words*>(__builtin_assume_aligned(from, 32));
}
/// Sets 32 aligned bytes to 0. The store is volatile, because otherwise clang would merge two such stores into one
/// AVX-512 store.
MILLRACE_AVX2 void clear(std::int16_t* at) noexcept {
  *static_cast<volatile words*>(__builtin_assume_aligned(at, 32)) = words{};
}
MILLRACE_AVX2 words words_of(int value) noexcept { return words{} + static_cast<std::int16_t>(value); }
MILLRACE_AVX2 quads quads_of(int value) noexcept { return quads{} + value; }
/// Reinterprets the register. Templates call this function because nvcc cannot compile such a cast of a dependent type.
MILLRACE_AVX2 quads as_quads(words a) noexcept { return reinterpret_cast<quads>(a); }
MILLRACE_AVX2 octs as_octs(quads a) noexcept { return reinterpret_cast<octs>(a); }
/// Returns (first, second) eight times.
MILLRACE_AVX2 words pair_of(int first, int second) noexcept {
  return reinterpret_cast<words>(quads_of(static_cast<int>((first & 0xffff) | static_cast<unsigned>(second) << 16)));
}

/// Interleaves the first elements of each half of `a` and `b`; for words, a0 b0 a1 b1 a2 b2 a3 b3. high_pairs()
/// interleaves the remaining elements of each half.
MILLRACE_AVX2 words low_pairs(words a, words b) noexcept {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 8, 24, 9, 25, 10, 26, 11, 27);
}
MILLRACE_AVX2 words high_pairs(words a, words b) noexcept {
  return __builtin_shufflevector(a, b, 4, 20, 5, 21, 6, 22, 7, 23, 12, 28, 13, 29, 14, 30, 15, 31);
}
MILLRACE_AVX2 bytes low_pairs(bytes a, bytes b) noexcept {
  return __builtin_shufflevector(a, b, 0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39, 16, 48, 17, 49, 18, 50,
                                 19, 51, 20, 52, 21, 53, 22, 54, 23, 55);
}
MILLRACE_AVX2 bytes high_pairs(bytes a, bytes b) noexcept {
  return __builtin_shufflevector(a, b, 8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47, 24, 56, 25, 57,
                                 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63);
}
MILLRACE_AVX2 quads low_pairs(quads a, quads b) noexcept {
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13);
}
MILLRACE_AVX2 quads high_pairs(quads a, quads b) noexcept {
  return __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15);
}
MILLRACE_AVX2 octs low_pairs(octs a, octs b) noexcept { return __builtin_shufflevector(a, b, 0, 4, 2, 6); }
MILLRACE_AVX2 octs high_pairs(octs a, octs b) noexcept { return __builtin_shufflevector(a, b, 1, 5, 3, 7); }
/// Swaps the two middle quarters, so that corresponding quarters of the two halves become neighbors.
MILLRACE_AVX2 octs swap_middle(octs a) noexcept { return __builtin_shufflevector(a, a, 0, 2, 1, 3); }
/// Interleaves the numbers of the first half with the numbers of the second half.
MILLRACE_AVX2 quads interleave_halves(quads a) noexcept {
  return __builtin_shufflevector(a, a, 0, 4, 1, 5, 2, 6, 3, 7);
}
/// Transposes four rows in each half. Afterwards, q[c] is column c.
MILLRACE_AVX2 void transpose(quads* q) noexcept {
  const auto a = reinterpret_cast<octs>(low_pairs(q[0], q[1])), b = reinterpret_cast<octs>(high_pairs(q[0], q[1]));
  const auto c = reinterpret_cast<octs>(low_pairs(q[2], q[3])), d = reinterpret_cast<octs>(high_pairs(q[2], q[3]));
  q[0] = reinterpret_cast<quads>(low_pairs(a, c));
  q[1] = reinterpret_cast<quads>(high_pairs(a, c));
  q[2] = reinterpret_cast<quads>(low_pairs(b, d));
  q[3] = reinterpret_cast<quads>(high_pairs(b, d));
}

/// Returns the even words of the first operand, interleaved with the odd words of the second.
MILLRACE_AVX2 words alternate(words even, words odd) noexcept {
  return __builtin_shufflevector(even, odd, 0, 17, 2, 19, 4, 21, 6, 23, 8, 25, 10, 27, 12, 29, 14, 31);
}

/// Drops `bits` fraction bits and interleaves the words of `even` with the words of `odd`.
template <int bits>
MILLRACE_AVX2 words joined(quads even, quads odd) noexcept {
  const quads shifted = bits <= 16 ? odd << (16 - bits) : odd >> (bits - 16);
  return alternate(reinterpret_cast<words>(even >> bits), reinterpret_cast<words>(shifted));
}

/// Returns a0 b0 + a1 b1, a2 b2 + a3 b3, ...
MILLRACE_AVX2 quads multiply_pairs(words a, words b) noexcept { return __builtin_ia32_pmaddwd256(a, b); }
MILLRACE_AVX2 words high_products(words a, words b) noexcept { return __builtin_ia32_pmulhw256(a, b); }
MILLRACE_AVX2 words magnitudes(words a) noexcept { return a > -a ? a : -a; }
/// Returns the sums of unsigned numbers, limited to 65535. Uses inline assembly, because the builtins differ between
/// compilers and compiler versions.
MILLRACE_AVX2 words saturating_sum(words a, words b) noexcept {
  words sum;
  asm("vpaddusw %2, %1, %0" : "=x"(sum) : "x"(a), "x"(b));
  return sum;
}
/// Returns words clamped to -32768..32767. Each half contains the words of `a`, then the words of `b`.
MILLRACE_AVX2 words packed(quads a, quads b) noexcept { return __builtin_ia32_packssdw256(a, b); }
/// Returns bytes clamped to 0..255. Each half contains the bytes of `a`, then the bytes of `b`.
MILLRACE_AVX2 bytes clamped_bytes(words a, words b) noexcept {
  return reinterpret_cast<bytes>(__builtin_ia32_packuswb256(a, b));
}
/// Returns whether any bit is set in both `a` and `b`.
MILLRACE_AVX2 bool any_of(words a, words b) noexcept {
  return __builtin_ia32_ptestz256(reinterpret_cast<octs>(a), reinterpret_cast<octs>(b)) == 0;
}

MILLRACE_AVX2 void store_low(std::uint8_t* to, octs v) noexcept {
  const auto half = __builtin_shufflevector(v, v, 0, 1);
  std::memcpy(to, &half, 16);
}
MILLRACE_AVX2 void store_high(std::uint8_t* to, octs v) noexcept {
  const auto half = __builtin_shufflevector(v, v, 2, 3);
  std::memcpy(to, &half, 16);
}

#undef MILLRACE_AVX2

}}}}  // namespace millrace::detail::avx2

#endif
