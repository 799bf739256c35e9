// Reports whether this CPU supports the instruction sets that kernels use: AVX2, AVX-512, SVE2 and others.
//
//   bool layer = mr::detail::cpu_has_word_layer();    // AVX2 or NEON
//   bool wide = mr::detail::cpu_has_wide_vectors();   // registers of 512 bits are profitable
//
// Errors: none. Threads: any.
#pragma once

#include <millrace/base/version.hpp>

#ifdef __x86_64__
#include <cpuid.h>
#define MILLRACE_CPU_HAS(name) (__builtin_cpu_supports(name) != 0)
#else
#define MILLRACE_CPU_HAS(name) false
#endif
#ifdef __aarch64__
#include <sys/auxv.h>
#endif

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns whether the CPU has the instructions of the word layer in simd/words.hpp: AVX2, FMA and F16C, or NEON.
inline bool cpu_has_word_layer() noexcept {
#ifdef __x86_64__
  static const bool has = [] {   // queried once, because cpuid traps to the hypervisor in a virtual machine
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    const bool half_floats = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
    return half_floats && MILLRACE_CPU_HAS("avx2") && MILLRACE_CPU_HAS("fma");
  }();
  return has;
#elif defined __aarch64__
  return true;   // every aarch64 CPU has NEON
#else
  return false;
#endif
}

/// Returns whether the CPU has PCLMUL, the carry-less multiplication.
inline bool cpu_has_pclmul() noexcept { return MILLRACE_CPU_HAS("pclmul"); }

/// Returns whether the CPU has the instructions for CRC-32C. On x86-64, this requires SSE4.2 and PCLMUL. On aarch64,
/// this requires the CRC32 extension, which also contains instructions for CRC-32.
inline bool cpu_has_crc32c() noexcept {
#ifdef __aarch64__
  return (::getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
#else
  return MILLRACE_CPU_HAS("sse4.2") && cpu_has_pclmul();
#endif
}

/// Returns whether the CPU has BMI and BMI2. With them, one instruction shifts by a variable number of bits, or
/// extracts a variable number of low bits.
inline bool cpu_has_bit_manipulation() noexcept { return MILLRACE_CPU_HAS("bmi") && MILLRACE_CPU_HAS("bmi2"); }

/// Returns whether the CPU has a fast instruction that moves bits to the positions of a mask. On x86-64, this is PDEP;
/// BMI and POPCNT are required, too. On Zen 1 and 2, the result is false, because their PDEP requires hundreds of
/// cycles. On aarch64, this is BDEP, from an extension of SVE2.
inline bool cpu_has_fast_deposit() noexcept {
#ifdef __aarch64__
  return (::getauxval(AT_HWCAP2) & HWCAP2_SVEBITPERM) != 0;
#elif defined __x86_64__
  return cpu_has_bit_manipulation() && MILLRACE_CPU_HAS("popcnt") && __builtin_cpu_is("znver1") == 0 &&
         __builtin_cpu_is("znver2") == 0;
#else
  return false;
#endif
}

/// Returns whether the CPU has AVX-512VL, which includes vpternlog in 256-bit registers.
inline bool cpu_has_three_way_logic() noexcept { return MILLRACE_CPU_HAS("avx512vl"); }

/// Returns whether the CPU has AVX-512VBMI and AVX-512VL, which include vpermi2b in 256-bit registers.
inline bool cpu_has_byte_permutations() noexcept { return MILLRACE_CPU_HAS("avx512vbmi") && cpu_has_three_way_logic(); }

/// Returns whether the kernels are faster with 512-bit registers. Processors without AVX-512VBMI2 reduce their clock
/// frequency when they use these registers.
inline bool cpu_has_wide_vectors() noexcept {
  return MILLRACE_CPU_HAS("avx512bw") && MILLRACE_CPU_HAS("avx512vnni") && MILLRACE_CPU_HAS("avx512vbmi2") &&
         cpu_has_byte_permutations();
}

}}}   // namespace millrace::detail

#undef MILLRACE_CPU_HAS
