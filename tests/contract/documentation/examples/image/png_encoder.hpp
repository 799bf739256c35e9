void example(const mr::image& pixels) {
EXAMPLE
}
