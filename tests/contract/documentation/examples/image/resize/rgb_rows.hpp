void example(const mr::detail::jpeg_planes& planes) {
EXAMPLE
}
