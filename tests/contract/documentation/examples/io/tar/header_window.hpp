void example(mr::byte_source& source, mr::block_pool& pool, std::uint64_t offset_bytes, std::uint64_t size_bytes) {
EXAMPLE
}
