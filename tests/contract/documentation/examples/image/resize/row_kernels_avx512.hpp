#include <millrace/image/resize/row_kernels_avx2.hpp>
#ifdef __x86_64__
void example(const mr::detail::row_taps& taps, std::uint8_t* row) {
EXAMPLE
}
#endif
