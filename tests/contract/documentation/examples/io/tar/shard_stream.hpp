void use(std::span<const std::byte> chunk);
void example(mr::byte_source& source, mr::block_pool& pool) {
EXAMPLE
}
