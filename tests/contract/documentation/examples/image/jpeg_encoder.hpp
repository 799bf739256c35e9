void example(const mr::image& pixels, const mr::image& gray_pixels) {
EXAMPLE
}
