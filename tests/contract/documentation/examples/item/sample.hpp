void show(const mr::record& r, std::uint64_t shard, std::uint64_t index) {
EXAMPLE
}
