void example(std::span<const std::byte> data) {
EXAMPLE
}
