void example(std::span<const std::uint8_t> file, std::size_t scan_begin, mr::detail::byte_memory& memory,
             const std::uint8_t* from, std::size_t bytes, unsigned number) {
EXAMPLE
}
