void example(const std::uint8_t* nearer, const std::uint8_t* farther, std::size_t count, std::int16_t* sums,
             const std::uint8_t* a, const std::uint8_t* b, const std::uint8_t* c, const std::uint8_t* d,
             std::int16_t* ba, std::int16_t* bc, std::int16_t* cb, std::int16_t* cd, const std::uint8_t* y,
             const std::int16_t* sums_u, const std::int16_t* sums_v, std::uint8_t* red, std::uint8_t* green,
             std::uint8_t* blue) {
EXAMPLE
}
