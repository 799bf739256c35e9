void example(std::uint8_t* row, float* numbers, const std::uint8_t* line, void* to, float s, float b) {
EXAMPLE
}
