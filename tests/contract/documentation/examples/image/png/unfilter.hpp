void example(const std::uint8_t* filtered, const std::uint8_t* row_before, std::uint8_t* row) {
EXAMPLE
}
