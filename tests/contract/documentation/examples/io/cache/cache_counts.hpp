void example(const mr::cache_options& options) {
EXAMPLE
}
