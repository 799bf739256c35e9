#include <millrace/image/baseline/inverse_dct_avx2.hpp>
#ifdef __x86_64__
void example(std::int16_t* coefficients, const mr::detail::dequantiser& q, std::uint8_t* samples,
             std::size_t stride_bytes, bool& tame) {
EXAMPLE
}
#endif
