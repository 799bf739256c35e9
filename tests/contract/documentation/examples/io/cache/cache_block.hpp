void example(const std::string& path, const mr::detail::cached_object& object, const mr::detail::cache_layout& layout,
             std::uint64_t offset_in_block, std::span<std::byte> buffer) {
EXAMPLE
}
