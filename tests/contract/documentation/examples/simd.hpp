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
