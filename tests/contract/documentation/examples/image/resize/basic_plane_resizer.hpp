void example(const mr::detail::plane_resize& job) {
EXAMPLE
}
