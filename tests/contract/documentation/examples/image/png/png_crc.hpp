void example(std::span<const std::byte> data, std::span<const std::byte> first_half,
             std::span<const std::byte> second_half) {
EXAMPLE
}
