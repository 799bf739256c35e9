#include <millrace/image/simd/cpu_features.hpp>
#ifdef __x86_64__
void example(const mr::detail::tap_table& taps, const std::uint8_t* a, const std::uint8_t* b, const std::uint8_t* c,
             const std::uint8_t* d, std::int16_t* sums, bool clamps) {
EXAMPLE
}
#endif
