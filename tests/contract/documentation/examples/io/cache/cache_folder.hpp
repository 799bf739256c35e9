void example(const mr::cache_options& options, const mr::detail::cache_layout& layout,
             mr::detail::cache_counts& counts, const mr::detail::cached_object& object,
             std::span<const std::byte> data) {
EXAMPLE
}
