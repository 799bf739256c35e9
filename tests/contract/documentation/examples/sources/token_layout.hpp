void example(const std::string& name, std::span<const std::byte> front, std::uint64_t size,
             const mr::detail::token_layout_options& options) {
EXAMPLE
}
