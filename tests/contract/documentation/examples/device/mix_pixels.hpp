void example(std::uint8_t* first, std::uint8_t* second, const mr::row_mix& how) {
EXAMPLE
}
