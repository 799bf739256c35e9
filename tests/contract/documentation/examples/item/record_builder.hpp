void show(mr::block_pool& pool, std::uint64_t offset_bytes, std::size_t size_bytes) {
EXAMPLE
}
