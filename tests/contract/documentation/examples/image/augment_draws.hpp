void example(mr::rng& random) {
EXAMPLE
}
