void example(const mr::detail::expected_order& order) {
EXAMPLE
}
