void example(const mr::detail::deflate_codes& codes) {
EXAMPLE
}
