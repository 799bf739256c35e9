void example(const mr::record& r, mr::rng& rng) {
EXAMPLE
}
