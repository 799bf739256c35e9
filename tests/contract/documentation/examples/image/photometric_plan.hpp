void example(mr::rng& rng, std::span<std::uint8_t> row, mr::scratch& scratch) {
EXAMPLE
}
