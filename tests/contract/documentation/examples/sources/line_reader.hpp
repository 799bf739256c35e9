void use(std::string_view text, std::uint64_t number);
void reading(mr::block_pool& pool) {
EXAMPLE
}
