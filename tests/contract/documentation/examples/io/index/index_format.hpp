void example(const mr::detail::shard_index& index, const mr::detail::index_head& head,
             const mr::detail::index_columns& columns) {
EXAMPLE
}
