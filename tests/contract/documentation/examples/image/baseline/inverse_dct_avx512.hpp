#ifdef __x86_64__
void example(std::int16_t* coefficients, const mr::detail::dequantiser& q, std::uint8_t* samples,
             std::size_t stride_bytes, mr::detail::quad_result& result) {
EXAMPLE
}
#endif
