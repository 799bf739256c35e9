// Reduces bytes to 16 bytes with the same CRC-32, by carry-less multiplication. base/crc32c.hpp uses this fast path.
//
//   if (mr::detail::cpu_has_pclmul() && data.size() >= mr::detail::crc32_least_bytes) {
//     std::size_t done = 0;
//     const auto folded = mr::detail::fold_crc32(data, state, done);   // replaces the first `done` bytes
//     state = continue_with(folded, data.subspan(done));
//   }
//
// The folded bytes with an initial state of 0 produce the same state as the original bytes with `state`.
//
// Errors: none. Threads: pure functions; any thread. Source: Gopal et al., "Fast CRC Computation for Generic
// Polynomials Using PCLMULQDQ Instruction" (Intel, 2009).
#pragma once

#include <millrace/base/version.hpp>

#ifdef __x86_64__

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

using crc32_lane [[gnu::vector_size(16)]] = long long;

/// The minimum number of bytes for fold_crc32().
inline constexpr std::size_t crc32_least_bytes = 4 * sizeof(crc32_lane);

/// Multiplies `lane` by powers of x modulo the polynomial, which shifts its bytes to the position of `next`. Then adds
/// `next`.
__attribute__((target("pclmul"), always_inline)) inline crc32_lane fold_crc32_lane(crc32_lane lane, crc32_lane by,
                                                                                   crc32_lane next) noexcept {
  return __builtin_ia32_pclmulqdq128(lane, by, 0x00) ^ __builtin_ia32_pclmulqdq128(lane, by, 0x11) ^ next;
}

/// Folds the largest multiple of 16 bytes, and sets `done_bytes` to the number of folded bytes. Call this function only
/// if the processor has PCLMUL.
__attribute__((target("pclmul"))) inline std::array<std::byte, 16> fold_crc32(std::span<const std::byte> data,
                                                                              std::uint32_t state,
                                                                              std::size_t& done_bytes) noexcept {
  constexpr std::size_t lanes = 4, lane_bytes = sizeof(crc32_lane);
  // x^(512 + 64 - 32), x^(512 - 32) and x^(128 + 64 - 32), x^(128 - 32), modulo the polynomial, bits reflected.
  const crc32_lane by_four{0x1'5444'2bd4, 0x1'c6e4'1596}, by_one{0x1'7519'97d0, 0x0'ccaa'009e};
  const auto load = [](const std::byte* from) noexcept {
    crc32_lane value;
    std::memcpy(&value, from, sizeof value);
    return value;
  };
  const std::byte* at = data.data();
  const std::byte* const end = at + data.size();
  crc32_lane lane[lanes];
  for (std::size_t k = 0; k < lanes; ++k) lane[k] = load(at + k * lane_bytes);
  lane[0] ^= crc32_lane{static_cast<long long>(state), 0};
  at += lanes * lane_bytes;
  for (; static_cast<std::size_t>(end - at) >= lanes * lane_bytes; at += lanes * lane_bytes)
    for (std::size_t k = 0; k < lanes; ++k) lane[k] = fold_crc32_lane(lane[k], by_four, load(at + k * lane_bytes));
  crc32_lane all = lane[0];
  for (std::size_t k = 1; k < lanes; ++k) all = fold_crc32_lane(all, by_one, lane[k]);
  for (; static_cast<std::size_t>(end - at) >= lane_bytes; at += lane_bytes)
    all = fold_crc32_lane(all, by_one, load(at));
  done_bytes = data.size() - static_cast<std::size_t>(end - at);
  std::array<std::byte, lane_bytes> folded;
  std::memcpy(folded.data(), &all, lane_bytes);
  return folded;
}

}}}   // namespace millrace::detail

#endif
