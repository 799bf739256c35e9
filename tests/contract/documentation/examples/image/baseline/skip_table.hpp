void example(const mr::detail::huffman_code& ac, mr::detail::skip_table& table, std::uint64_t window,
             std::uintptr_t& bits, unsigned& k) {
EXAMPLE
}
