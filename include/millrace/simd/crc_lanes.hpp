// Computes CRC-32C with instructions of SSE4.2 or Armv8, and CRC-32 with instructions of Armv8 or PCLMUL.
// base/crc32c.hpp uses these fast paths.
//
//   using mr::detail::crc32c_instruction;
//   if (mr::detail::cpu_has_crc32c()) state = mr::detail::crc_by_instruction<crc32c_instruction>(data, state);
//
// Long data is divided into blocks of three consecutive parts, called lanes here. The loop processes the lanes of a
// block alternately, so that the processor can execute their instructions in parallel.
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

/// Eight bytes of data at any address, also an unaligned one.
using crc_word [[gnu::aligned(1), gnu::may_alias]] = std::uint64_t;

inline const crc_word* crc_word_at(const std::byte* from) noexcept { return reinterpret_cast<const crc_word*>(from); }

/// The functions add() update a state of CRC-32C or CRC-32 by eight bytes or one byte. They use inline assembly,
/// because g++ and clang need different target attributes for intrinsics. On x86-64, the instruction also loads the
/// eight bytes.
#ifdef __x86_64__
struct crc32c_instruction {
  MILLRACE_ALWAYS_INLINE static void add(std::uint64_t& state, const crc_word* bytes) noexcept {
    asm("crc32q %1, %0" : "+r"(state) : "m"(*bytes));
  }
  MILLRACE_ALWAYS_INLINE static void add(std::uint64_t& state, std::byte byte) noexcept {
    asm("crc32b %b1, %k0" : "+r"(state) : "r"(byte));
  }
};
#else
template <bool castagnoli>
struct arm_crc_instruction {
  MILLRACE_ALWAYS_INLINE static void add(std::uint64_t& state, const crc_word* bytes) noexcept {
    if constexpr (castagnoli) asm(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(state) : "r"(*bytes));
    else asm(".arch_extension crc\n\tcrc32x %w0, %w0, %x1" : "+r"(state) : "r"(*bytes));
  }
  MILLRACE_ALWAYS_INLINE static void add(std::uint64_t& state, std::byte byte) noexcept {
    if constexpr (castagnoli) asm(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(state) : "r"(byte));
    else asm(".arch_extension crc\n\tcrc32b %w0, %w0, %w1" : "+r"(state) : "r"(byte));
  }
};
using crc32c_instruction = arm_crc_instruction<true>;
using crc32_instruction = arm_crc_instruction<false>;
#endif

#ifdef __x86_64__

/// Returns x^(8 * bytes - 33) modulo the polynomial of CRC-32C, bits reflected. The exponent contains -33, because the
/// reflected product adds a factor of x, and the crc32q instruction multiplies by x^32.
constexpr long long crc32c_power(std::size_t bytes) {
  switch (bytes) {
    case 64: return 0x9e4a'ddf8;
    case 128: return 0x0d3b'6092;
    case 256: return 0xb9e0'2b86;
    case 512: return 0xdd7e'3b0c;
    case 4096: return 0x82f8'9c77;
    case 8192: return 0x54a8'6326;
    default: throw "no constant for lanes of this size";
  }
}

/// Combines the states of three lanes with PCLMUL. The two products do not depend on each other, and need no tables.
template <class Instruction, std::size_t lane_bytes>
struct crc_lane_join {
  std::uint64_t operator()(std::uint64_t first, std::uint64_t second, std::uint64_t third) const noexcept {
    using pair [[gnu::vector_size(16)]] = long long;
    constexpr long long by_two = crc32c_power(2 * lane_bytes), by_one = crc32c_power(lane_bytes);
    pair product{static_cast<long long>(first), 0}, addend{static_cast<long long>(second), 0};
    asm("pclmulqdq $0, %1, %0" : "+x"(product) : "x"(pair{by_two, 0}));
    asm("pclmulqdq $0, %1, %0" : "+x"(addend) : "x"(pair{by_one, 0}));
    const crc_word sum = static_cast<std::uint64_t>((product ^ addend)[0]);
    std::uint64_t state = 0;
    asm("crc32q %1, %0" : "+r"(state) : "r"(sum));
    return state ^ third;
  }
};

#else

/// Combines the states of three lanes. The tables contain the effect of each byte of a state on the state after
/// `lane_bytes` zero bytes.
template <class Instruction, std::size_t lane_bytes>
class crc_lane_join {
 public:
  crc_lane_join() noexcept {
    const crc_word zero = 0;
    for (std::size_t bit = 0; bit < 32; ++bit) {
      std::uint64_t state = std::uint64_t{1} << bit;
      for (std::size_t i = 0; i < lane_bytes; i += 8) Instruction::add(state, &zero);
      for (std::size_t byte = 0; byte < 256; ++byte)
        if ((byte >> bit % 8 & 1) != 0) table_[bit / 8][byte] ^= static_cast<std::uint32_t>(state);
    }
  }
  std::uint64_t operator()(std::uint64_t first, std::uint64_t second, std::uint64_t third) const noexcept {
    return after_zeros(after_zeros(first) ^ second) ^ third;
  }

 private:
  std::uint64_t after_zeros(std::uint64_t state) const noexcept {
    return table_[0][state & 255] ^ table_[1][(state >> 8) & 255] ^ table_[2][(state >> 16) & 255] ^
           table_[3][state >> 24];
  }

  std::array<std::array<std::uint32_t, 256>, 4> table_{};
};

#endif

/// Computes three lanes in parallel, and combines their states.
template <class Instruction, std::size_t lane_bytes>
const std::byte* crc_by_lanes(const std::byte* at, const std::byte* end, std::uint64_t& state) noexcept {
  static const crc_lane_join<Instruction, lane_bytes> join;
  while (static_cast<std::size_t>(end - at) >= 3 * lane_bytes) {
    std::uint64_t first = state, second = 0, third = 0;
    for (const std::byte* const stop = at + lane_bytes; at != stop; at += 8) {
      Instruction::add(first, crc_word_at(at));
      Instruction::add(second, crc_word_at(at + lane_bytes));
      Instruction::add(third, crc_word_at(at + 2 * lane_bytes));
    }
    state = join(first, second, third);
    at += 2 * lane_bytes;
  }
  return at;
}

/// Processes `data`, beginning with the state `before`, and returns the new state. A state is a checksum before the
/// final xor. Call this function only if the processor has the instruction.
template <class Instruction>
std::uint32_t crc_by_instruction(std::span<const std::byte> data, std::uint32_t before) noexcept {
  const std::byte* at = data.data();
  const std::byte* const end = at + data.size();
  std::uint64_t state = before;
  if (data.size() >= 3 * 4096) at = crc_by_lanes<Instruction, 4096>(at, end, state);
  if (data.size() >= 3 * 256) at = crc_by_lanes<Instruction, 256>(at, end, state);
  if (data.size() >= 3 * 64) at = crc_by_lanes<Instruction, 64>(at, end, state);   // shorter lanes for the rest
  std::uint64_t last = state;                                                      // local copy: stays in a register
  std::size_t left = static_cast<std::size_t>(end - at);
  for (; left >= 8; left -= 8, at += 8) Instruction::add(last, crc_word_at(at));
  for (; left > 0; --left, ++at) Instruction::add(last, *at);
  return static_cast<std::uint32_t>(last);
}

#ifdef __x86_64__
/// A lane of the code for PCLMUL: 16 bytes in a register. The lanes of the code above are longer.
using crc32_lane [[gnu::vector_size(16)]] = long long;

/// The minimum number of bytes for fold_crc32_lanes().
inline constexpr std::size_t crc32_least_bytes = 4 * sizeof(crc32_lane);

/// Shifts `lane` to the position of `next`: multiplies it by the two powers of x in `by`. Then adds `next`.
__attribute__((target("pclmul"), always_inline)) inline crc32_lane fold_crc32_lane(crc32_lane lane, crc32_lane by,
                                                                                   crc32_lane next) noexcept {
  return __builtin_ia32_pclmulqdq128(lane, by, 0x00) ^ __builtin_ia32_pclmulqdq128(lane, by, 0x11) ^ next;
}

/// Reduces `data`, except the last `data.size() % 16` bytes, to 16 bytes by carry-less multiplication. Sets
/// `done_bytes` to the number of reduced bytes. The CRC of the 16 bytes, computed from the initial state 0, is the CRC
/// of the reduced bytes, computed from the initial state `state`. Call this function only if the processor has PCLMUL.
/// Source: Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction" (Intel, 2009).
__attribute__((target("pclmul"))) inline std::array<std::byte, 16> fold_crc32_lanes(std::span<const std::byte> data,
                                                                                    std::uint32_t state,
                                                                                    std::size_t& done_bytes) noexcept {
  constexpr std::size_t lanes = 4, lane_bytes = sizeof(crc32_lane);
  // by_four contains x^(512 + 64 - 32) and x^(512 - 32). by_one contains x^(128 + 64 - 32) and x^(128 - 32). All are
  // modulo the polynomial, with reflected bits.
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
#endif

}}}   // namespace millrace::detail

#endif
