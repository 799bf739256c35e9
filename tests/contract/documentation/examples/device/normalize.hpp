void example(mr::tensor_view<const std::uint8_t, 4> pixels, mr::tensor_view<float, 4> numbers) {
EXAMPLE
}
