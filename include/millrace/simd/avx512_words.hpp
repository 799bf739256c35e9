// Defines the operations of an inverse DCT on AVX-512 registers of thirty-two 16-bit or sixteen 32-bit numbers.
//
//   using namespace mr::detail::avx512;
//   [[gnu::target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512vnni")]] bool share_a_bit(const std::int16_t* a) {
//     return any_of(load_two(a, a + 16), words_of(1));       // aligned to 32 bytes
//   }
//
// These are the operations of words_avx2.hpp for functions whose target includes AVX-512 and VNNI. All functions are
// inlined. Some use inline assembly, because the builtins differ between compilers. Numbers of 16, 32 and 64 bits are
// called words, quads and octs. A quarter is 128 bits of a register.
// Threads: any; all functions except stores are pure.
#pragma once

#include <millrace/simd/words_avx2.hpp>

#include <array>
#include <cstdint>
#include <cstring>

#ifdef __x86_64__

namespace millrace { inline namespace MILLRACE_ABI { namespace detail { namespace avx512 {

using words [[gnu::vector_size(64)]] = std::int16_t;
using quads [[gnu::vector_size(64)]] = std::int32_t;
using octs [[gnu::vector_size(64)]] = long long;
using bytes [[gnu::vector_size(64)]] = char;

#define MILLRACE_AVX512 [[gnu::target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512vnni"), gnu::always_inline]] inline

/// Loads 32 bytes at `first` and 32 bytes at `second`, in this order. Both addresses must be aligned to 32 bytes.
MILLRACE_AVX512 words load_two(const std::int16_t* first, const std::int16_t* second) noexcept {
  const avx2::words a = avx2::step_rows{first}.load(0), b = avx2::step_rows{second}.load(0);
  return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22,
                                 23, 24, 25, 26, 27, 28, 29, 30, 31);
}
MILLRACE_AVX512 words words_of(int value) noexcept { return words{} + static_cast<std::int16_t>(value); }
MILLRACE_AVX512 quads quads_of(int value) noexcept { return quads{} + value; }
/// Reinterprets the register. Templates call this function because nvcc cannot compile such a cast of a dependent type.
MILLRACE_AVX512 quads as_quads(words a) noexcept { return reinterpret_cast<quads>(a); }

/// Interleaves the first elements of each quarter, as avx2::low_pairs() does for each block. high_pairs() interleaves
/// the remaining elements.
MILLRACE_AVX512 words low_pairs(words a, words b) noexcept {
  return __builtin_shufflevector(a, b, 0, 32, 1, 33, 2, 34, 3, 35, 8, 40, 9, 41, 10, 42, 11, 43, 16, 48, 17, 49, 18, 50,
                                 19, 51, 24, 56, 25, 57, 26, 58, 27, 59);
}
MILLRACE_AVX512 words high_pairs(words a, words b) noexcept {
  return __builtin_shufflevector(a, b, 4, 36, 5, 37, 6, 38, 7, 39, 12, 44, 13, 45, 14, 46, 15, 47, 20, 52, 21, 53, 22,
                                 54, 23, 55, 28, 60, 29, 61, 30, 62, 31, 63);
}
MILLRACE_AVX512 quads low_pairs(quads a, quads b) noexcept {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
}
MILLRACE_AVX512 quads high_pairs(quads a, quads b) noexcept {
  return __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
}
MILLRACE_AVX512 octs low_pairs(octs a, octs b) noexcept {
  return __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14);
}
MILLRACE_AVX512 octs high_pairs(octs a, octs b) noexcept {
  return __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
}
/// low_pairs() and high_pairs() for bytes. They use inline assembly, because g++ 12 would load 128 bytes of indices
/// from memory.
MILLRACE_AVX512 bytes low_pairs(bytes a, bytes b) noexcept {
  bytes pairs;
  asm("vpunpcklbw %2, %1, %0" : "=v"(pairs) : "v"(a), "v"(b));
  return pairs;
}
MILLRACE_AVX512 bytes high_pairs(bytes a, bytes b) noexcept {
  bytes pairs;
  asm("vpunpckhbw %2, %1, %0" : "=v"(pairs) : "v"(a), "v"(b));
  return pairs;
}
/// Returns the 64-bit numbers with even indices, then those with odd indices.
MILLRACE_AVX512 octs even_then_odd(octs a) noexcept {
  return __builtin_shufflevector(a, a, 0, 2, 4, 6, 1, 3, 5, 7);
}
/// Transposes four rows in each quarter. Afterwards, q[c] is column c.
MILLRACE_AVX512 void transpose(quads* q) noexcept {
  const auto a = reinterpret_cast<octs>(low_pairs(q[0], q[1])), b = reinterpret_cast<octs>(high_pairs(q[0], q[1]));
  const auto c = reinterpret_cast<octs>(low_pairs(q[2], q[3])), d = reinterpret_cast<octs>(high_pairs(q[2], q[3]));
  q[0] = reinterpret_cast<quads>(low_pairs(a, c));
  q[1] = reinterpret_cast<quads>(high_pairs(a, c));
  q[2] = reinterpret_cast<quads>(low_pairs(b, d));
  q[3] = reinterpret_cast<quads>(high_pairs(b, d));
}

/// Returns sum + x * factor[0] + y * factor[1] for each pair (x, y).
MILLRACE_AVX512 quads add_products(quads sum, words xy, const std::array<std::int16_t, 2>& factors) noexcept {
  asm("vpdpwssd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(xy), "m"(factors));
  return sum;
}
/// Drops `bits` fraction bits and interleaves the words of `even` with the words of `odd`.
template <int bits>
MILLRACE_AVX512 words joined(quads even, quads odd) noexcept {
  quads joint = even >> bits;
  // Selects bits of %0 where %2 has ones, and bits of %1 elsewhere.
  asm("vpternlogd $0xe4, %2, %1, %0"
      : "+v"(joint) : "v"(bits <= 16 ? odd << (16 - bits) : odd >> (bits - 16)), "v"(quads_of(0xffff)));
  return reinterpret_cast<words>(joint);
}
/// Returns bytes clamped to 0..255. Each quarter contains the bytes of `a`, then the bytes of `b`.
MILLRACE_AVX512 bytes clamped_bytes(words a, words b) noexcept {
  bytes clamped;
  asm("vpackuswb %2, %1, %0" : "=v"(clamped) : "v"(a), "v"(b));
  return clamped;
}
/// Returns whether any bit is set in both `a` and `b`.
MILLRACE_AVX512 bool any_of(words a, words b) noexcept {
  const words common = a & b;
  const avx2::words low = __builtin_shufflevector(common, common, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const avx2::words high = __builtin_shufflevector(common, common, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28,
                                                   29, 30, 31);
  const avx2::words either = low | high;
  return avx2::any_of(either, either);
}

MILLRACE_AVX512 void store_low(std::uint8_t* to, octs v) noexcept {
  const auto half = __builtin_shufflevector(v, v, 0, 1, 2, 3);
  std::memcpy(to, &half, 32);
}
MILLRACE_AVX512 void store_high(std::uint8_t* to, octs v) noexcept {
  const auto half = __builtin_shufflevector(v, v, 4, 5, 6, 7);
  std::memcpy(to, &half, 32);
}

#undef MILLRACE_AVX512

}}}}  // namespace millrace::detail::avx512

#endif
