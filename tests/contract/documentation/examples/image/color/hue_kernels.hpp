void example(std::uint8_t* row, const std::uint8_t* pixel) {
EXAMPLE
}
