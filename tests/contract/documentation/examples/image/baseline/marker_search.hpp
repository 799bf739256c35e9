void example(const std::uint8_t* from, const std::uint8_t* file_end) {
EXAMPLE
}
