void example(const mr::detail::folder_rule& o) {
EXAMPLE
}
