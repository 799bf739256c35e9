void show(const mr::detail::shard_order& order) {
EXAMPLE
}
