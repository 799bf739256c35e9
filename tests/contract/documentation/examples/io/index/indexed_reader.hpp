void example(mr::byte_source& source, mr::detail::shard_index& index, mr::block_pool& pool,
             std::span<const std::uint32_t> numbers, std::span<mr::record> records) {
EXAMPLE
}
