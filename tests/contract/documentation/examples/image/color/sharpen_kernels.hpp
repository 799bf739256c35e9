void example(const mr::detail::rgb_pixels& pixels, std::vector<std::uint8_t>& memory) {
EXAMPLE
}
