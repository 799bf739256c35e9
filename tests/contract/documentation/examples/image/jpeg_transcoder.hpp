void example(std::span<const std::byte> bytes, const mr::jpeg_codes& codes) {
EXAMPLE
}
