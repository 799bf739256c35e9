void example(std::span<const std::byte> file) {
EXAMPLE
}
