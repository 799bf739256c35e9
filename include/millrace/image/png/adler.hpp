// Computes Adler-32, the checksum of a zlib stream's output.
//
//   std::uint32_t complete = mr::detail::adler(data);
//   std::uint32_t same = mr::detail::adler(second_half, mr::detail::adler(first_half));
//
// Uses NEON, or AVX2 if the CPU supports it. The result does not depend on the CPU.
// Threads: pure functions; any thread. Errors: none.
// Source: RFC 1950, sections 2.2 and 8.2.
#pragma once

#include <millrace/simd/cpu_features.hpp>
#include <millrace/simd/words.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The two sums of Adler-32. For each byte, add() adds the byte to `first`, and then `first` to `second`.
struct adler_sums {
  static constexpr std::uint32_t modulus = 65'521;
  static constexpr std::size_t block_bytes = 64;      ///< bytes in a step of the vector code
  static constexpr std::size_t max_at_once = 5'504;   ///< maximum bytes between reduce() calls; sums stay below 2^32

  std::uint64_t first = 1, second = 0;

  void add(std::span<const std::uint8_t> bytes) noexcept {
    for (const std::uint8_t byte : bytes) second += first += byte;
  }
  void reduce() noexcept { first %= modulus, second %= modulus; }
};

}}}   // namespace millrace::detail

#define MILLRACE_KERNELS <millrace/image/png/adler_body.inc>
#include <millrace/simd/for_each_layer.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns the checksum of `bytes`. If `before` is the checksum of the preceding bytes, returns the checksum of the
/// preceding bytes and `bytes` together.
inline std::uint32_t adler(std::span<const std::uint8_t> bytes, std::uint32_t before = 1) noexcept {
  adler_sums sums{.first = before & 0xffff, .second = before >> 16};
  while (!bytes.empty()) {
    auto now = bytes.first(std::min(bytes.size(), adler_sums::max_at_once));
    bytes = bytes.subspan(now.size());
    [[maybe_unused]] const auto blocks = now.first(now.size() / adler_sums::block_bytes * adler_sums::block_bytes);
#if defined __x86_64__ || defined __aarch64__
    if (cpu_has_word_layer()) {
      word_layer::add_to_adler(sums, blocks);
      now = now.subspan(blocks.size());
    }
#endif
    sums.add(now);
    sums.reduce();
  }
  return static_cast<std::uint32_t>(sums.second << 16 | sums.first);
}

}}}   // namespace millrace::detail
