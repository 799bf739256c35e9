void use(const mr::record& sample);
void example() {
EXAMPLE
}
