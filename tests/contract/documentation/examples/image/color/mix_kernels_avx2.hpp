#include <millrace/image/simd/cpu_features.hpp>
#ifdef __x86_64__
void example(std::span<const mr::detail::mixed_bytes> parts, std::size_t count, std::uint8_t* out) {
EXAMPLE
}
#endif
