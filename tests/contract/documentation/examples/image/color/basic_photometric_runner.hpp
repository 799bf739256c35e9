void example(std::span<const mr::detail::photometric_op> ops, const mr::detail::rgb_pixels& pixels) {
EXAMPLE
}
