void example(const mr::detail::rgb_pixels& pixels) {
EXAMPLE
}
