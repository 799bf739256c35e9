void show(const mr::record& r) {
EXAMPLE
}
