#include <millrace/image/simd/cpu_features.hpp>
#ifdef __x86_64__
void example(std::uint8_t* row) {
EXAMPLE
}
#endif
