void example(mr::detail::shard_index& index, const mr::detail::entry_maker& make, const std::string& shard,
             const std::string& path) {
EXAMPLE
}
