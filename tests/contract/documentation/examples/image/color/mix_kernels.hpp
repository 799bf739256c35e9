void example(const std::uint8_t* first, const std::uint8_t* second, std::size_t count, std::uint8_t* out) {
EXAMPLE
}
