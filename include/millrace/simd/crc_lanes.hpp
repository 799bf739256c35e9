// Computes CRC-32C with instructions of SSE4.2 or Armv8, and CRC-32 with instructions of Armv8. base/crc32c.hpp and
// base/crc32.hpp use these fast paths.
//
//   using mr::detail::crc32c_instruction;
//   if (mr::detail::cpu_has_crc32c()) state = mr::detail::crc_by_instruction<crc32c_instruction>(data, state);
//
// Long data is processed in three interleaved lanes, because the processor can issue several instructions at once.
// Errors: none. Threads: pure functions; any thread.
#pragma once

#include <millrace/base/version.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#if defined __x86_64__ || defined __aarch64__

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Adds eight bytes or one byte to a state of CRC-32C. The instructions are inline assembly, because g++ and clang name
/// their targets differently.
struct crc32c_instruction {
  MILLRACE_ALWAYS_INLINE static void add(std::uint64_t& state, std::uint64_t bytes) noexcept {
#ifdef __x86_64__
    asm("crc32q %1, %0" : "+r"(state) : "r"(bytes));
#else
    asm(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(state) : "r"(bytes));
#endif
  }
  MILLRACE_ALWAYS_INLINE static void add(std::uint64_t& state, std::byte byte) noexcept {
#ifdef __x86_64__
    asm("crc32b %b1, %k0" : "+r"(state) : "r"(byte));
#else
    asm(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(state) : "r"(byte));
#endif
  }
};

#ifdef __aarch64__
/// Adds eight bytes or one byte to a state of CRC-32.
struct crc32_instruction {
  MILLRACE_ALWAYS_INLINE static void add(std::uint64_t& state, std::uint64_t bytes) noexcept {
    asm(".arch_extension crc\n\tcrc32x %w0, %w0, %x1" : "+r"(state) : "r"(bytes));
  }
  MILLRACE_ALWAYS_INLINE static void add(std::uint64_t& state, std::byte byte) noexcept {
    asm(".arch_extension crc\n\tcrc32b %w0, %w0, %w1" : "+r"(state) : "r"(byte));
  }
};
#endif

/// Computes the state after `zeros_bytes` zero bytes, with tables.
template <class Instruction, std::size_t zeros_bytes>
class crc_zeros {
 public:
  crc_zeros() noexcept {
    for (std::size_t bit = 0; bit < 32; ++bit) {
      std::uint64_t state = std::uint64_t{1} << bit;
      for (std::size_t i = 0; i < zeros_bytes; i += 8) Instruction::add(state, std::uint64_t{0});
      for (std::size_t byte = 0; byte < 256; ++byte)
        if ((byte >> bit % 8 & 1) != 0) table_[bit / 8][byte] ^= static_cast<std::uint32_t>(state);
    }
  }
  std::uint64_t operator()(std::uint64_t state) const noexcept {
    return table_[0][state & 255] ^ table_[1][(state >> 8) & 255] ^ table_[2][(state >> 16) & 255] ^
           table_[3][state >> 24];
  }

 private:
  std::array<std::array<std::uint32_t, 256>, 4> table_{};
};

inline std::uint64_t crc_word(const std::byte* from) noexcept {
  std::uint64_t value;
  std::memcpy(&value, from, 8);
  return value;
}

/// Computes three lanes in parallel, and combines their states.
template <class Instruction, std::size_t lane_bytes>
const std::byte* crc_by_lanes(const std::byte* at, const std::byte* end, std::uint64_t& state) noexcept {
  static const crc_zeros<Instruction, lane_bytes> zeros;
  while (static_cast<std::size_t>(end - at) >= 3 * lane_bytes) {
    std::uint64_t first = state, second = 0, third = 0;
    for (const std::byte* const stop = at + lane_bytes; at != stop; at += 8) {
      Instruction::add(first, crc_word(at));
      Instruction::add(second, crc_word(at + lane_bytes));
      Instruction::add(third, crc_word(at + 2 * lane_bytes));
    }
    state = zeros(zeros(first) ^ second) ^ third;
    at += 2 * lane_bytes;
  }
  return at;
}

/// Processes `data`, beginning with an inner state, and returns the new state. Call it only if the processor has the
/// instruction.
template <class Instruction>
std::uint32_t crc_by_instruction(std::span<const std::byte> data, std::uint32_t before) noexcept {
  const std::byte* at = data.data();
  const std::byte* const end = at + data.size();
  std::uint64_t state = before;
  if (data.size() >= 3 * 4096) at = crc_by_lanes<Instruction, 4096>(at, end, state);
  if (data.size() >= 3 * 256) at = crc_by_lanes<Instruction, 256>(at, end, state);
  if (data.size() >= 3 * 64) at = crc_by_lanes<Instruction, 64>(at, end, state);   // 512 of 2048 bytes remain
  std::uint64_t last = state;   // in a register, unlike `state`
  std::size_t left = static_cast<std::size_t>(end - at);
  for (; left >= 8; left -= 8, at += 8) Instruction::add(last, crc_word(at));
  for (; left > 0; --left, ++at) Instruction::add(last, *at);
  return static_cast<std::uint32_t>(last);
}

}}}  // namespace millrace::detail

#endif
