#include <millrace/image/simd/cpu_features.hpp>
#ifdef __x86_64__
void example(const mr::detail::rgb_pixels& pixels, const mr::detail::affine_map& map) {
EXAMPLE
}
#endif
