#include <millrace/image/simd/cpu_features.hpp>
#ifdef __x86_64__
EXAMPLE
#endif
