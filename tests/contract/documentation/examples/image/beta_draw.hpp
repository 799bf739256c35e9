void example(mr::rng& random) {
EXAMPLE
  static_cast<void>(share);
}
