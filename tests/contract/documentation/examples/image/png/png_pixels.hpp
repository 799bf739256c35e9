void example(const mr::detail::png_header& header, const std::uint8_t* stored, std::uint8_t* memory) {
EXAMPLE
}
