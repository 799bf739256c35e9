void example(std::span<const std::byte> file, std::span<const std::byte> rewritten) {
EXAMPLE
}
