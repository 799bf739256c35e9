void example(const mr::bytes& data, const mr::error_location& where) {
EXAMPLE
}
