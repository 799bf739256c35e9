#include <millrace/image/simd/cpu_features.hpp>
#ifdef __x86_64__
void example(const mr::detail::axis_tap_row& row, std::uint32_t* doubtful) {
EXAMPLE
}
#endif
