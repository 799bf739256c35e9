// ---- avx2_intrinsics.hpp
#include <millrace/simd/cpu_features.hpp>
#ifdef __x86_64__
EXAMPLE
#endif

// ---- avx2_words.hpp
#ifdef __x86_64__
EXAMPLE
#endif

// ---- avx512_words.hpp
#ifdef __x86_64__
EXAMPLE
#endif

// ---- bf16_avx2.hpp
#ifdef __x86_64__
EXAMPLE
#endif

// ---- byte_marks.hpp
void example(const std::uint8_t* from) {
EXAMPLE
}

// ---- crc32_pclmul.hpp
#include <millrace/simd/cpu_features.hpp>
#ifdef __x86_64__
std::uint32_t continue_with(std::span<const std::byte> folded, std::span<const std::byte> data);
void example(std::span<const std::byte> data, std::uint32_t state) {
EXAMPLE
}
#endif

// ---- crc_lanes.hpp
#include <millrace/simd/cpu_features.hpp>
#if defined __x86_64__ || defined __aarch64__
void example(std::span<const std::byte> data, std::uint32_t state) {
EXAMPLE
}
#endif
