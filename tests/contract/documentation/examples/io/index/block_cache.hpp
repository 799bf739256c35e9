std::vector<mr::record> records_of(std::uint64_t shard, std::uint32_t block);
void example(std::span<const std::uint32_t> offsets, std::span<mr::record* const> places) {
EXAMPLE
}
