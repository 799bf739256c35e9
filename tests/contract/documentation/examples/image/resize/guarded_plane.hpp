void example(const mr::detail::jpeg_planes& planes, std::size_t y) {
EXAMPLE
}
