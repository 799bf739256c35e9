void example(const mr::detail::huffman_code& ac, mr::detail::coefficient_table& table, std::uint64_t window,
             std::int16_t* block, const std::uint8_t* order, unsigned k) {
EXAMPLE
}
