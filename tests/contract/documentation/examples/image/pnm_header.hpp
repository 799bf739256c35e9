void use(std::size_t width, std::size_t height, std::span<const std::byte> samples);

void example(std::span<const std::byte> file) {
EXAMPLE
}
