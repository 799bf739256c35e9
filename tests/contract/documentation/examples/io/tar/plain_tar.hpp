void use(const mr::detail::tar_member& member);
void example(mr::byte_source& source, mr::block_pool& pool) {
EXAMPLE
}
