void example(std::span<const std::uint8_t> data, std::span<const std::uint8_t> first_half,
             std::span<const std::uint8_t> second_half) {
EXAMPLE
}
