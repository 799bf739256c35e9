void example(const mr::detail::flow_figures& window) {
EXAMPLE
}
