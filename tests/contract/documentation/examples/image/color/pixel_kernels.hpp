void example(const mr::detail::pending_tables& tables, std::uint8_t* row) {
EXAMPLE
}
