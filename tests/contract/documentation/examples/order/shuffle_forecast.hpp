void show(const mr::detail::exact_order& order) {
EXAMPLE
}
