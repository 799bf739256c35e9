void use(const std::uint8_t* row);
void example(std::span<const std::byte> file, const mr::detail::png_header& header) {
EXAMPLE
}
