void read(std::uint64_t shard, std::uint64_t index);

void show(const mr::detail::exact_order& order, std::uint64_t resumed_at) {
EXAMPLE
}
