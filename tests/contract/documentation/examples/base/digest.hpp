void example(std::uint64_t position, std::span<const std::byte> row) {
EXAMPLE
}
