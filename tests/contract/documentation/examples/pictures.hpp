void example(const mr::record& record, mr::rng& rng) {
EXAMPLE
}
