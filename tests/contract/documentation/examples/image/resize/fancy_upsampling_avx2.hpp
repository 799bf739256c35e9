#include <millrace/image/simd/cpu_features.hpp>
#ifdef __x86_64__
void example(const std::uint8_t* y, const std::uint8_t* u, const std::uint8_t* v, std::uint8_t* r, std::uint8_t* g,
             std::uint8_t* b) {
EXAMPLE
}
#endif
