void make_again(std::uint32_t) {}
void example(const std::uint8_t* bytes, float* numbers, const mr::detail::axis_tap_row& row, std::uint32_t* doubtful) {
EXAMPLE
}
