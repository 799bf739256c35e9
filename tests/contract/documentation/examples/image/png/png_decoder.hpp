void use(const std::uint8_t* row, std::size_t bytes);
void use_row(std::size_t y, std::span<const std::uint8_t> row);
void example(std::span<const std::byte> bytes, const mr::detail::png_region& region,
             const mr::detail::png_pixel_options& options) {
EXAMPLE
}
