void example(mr::detail::jpeg_coefficients& coefficients, mr::detail::jpeg_symbol_counts& counts) {
EXAMPLE
}
