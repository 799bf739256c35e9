void example(const mr::detail::shard_index& index, const mr::detail::index_front& front,
             const mr::detail::index_columns& columns, std::span<const std::uint32_t> ends) {
EXAMPLE
}
