void example(const mr::detail::token_layout& layout, std::span<const std::byte> bytes, const std::string& name) {
EXAMPLE
}
