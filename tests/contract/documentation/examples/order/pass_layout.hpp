void show(const std::vector<std::uint64_t>& counts) {
EXAMPLE
}
