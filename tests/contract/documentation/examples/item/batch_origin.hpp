void show(const mr::position& behind_it) {
EXAMPLE
}
