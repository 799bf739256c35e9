void example(std::span<const std::byte> bytes) {
EXAMPLE
}
