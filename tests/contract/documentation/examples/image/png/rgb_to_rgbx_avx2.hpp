void copy_one_by_one();
void example(const std::uint8_t* row, std::uint8_t* memory) {
EXAMPLE
}
